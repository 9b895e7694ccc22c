//go:build !linux

package process

import "syscall"

// attributes gives the child its own process group and its user. Only Linux can tell a child that its parent died.
func attributes(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if spec.As != nil {
		attr.Credential = &syscall.Credential{Uid: spec.As.UID, Gid: spec.As.GID}
	}

	return attr
}
