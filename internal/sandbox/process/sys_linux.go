package process

import "syscall"

// attributes gives the child its own process group, its user, and the signal that the kernel sends when we die.
func attributes(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: spec.DeathSignal}
	if spec.As != nil {
		attr.Credential = &syscall.Credential{Uid: spec.As.UID, Gid: spec.As.GID}
	}

	return attr
}
