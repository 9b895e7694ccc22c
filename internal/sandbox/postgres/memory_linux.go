package postgres

import "syscall"

const (
	sharedMemory = "/dev/shm"
	// memoryRoom is what the data may need: the write-ahead log alone grows to 1 GiB. Docker's default of 64 MiB is not enough.
	memoryRoom = 3 << 30
)

// memoryFolder is a folder in memory with enough room, or empty for none.
func memoryFolder() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(sharedMemory, &fs); err != nil {
		return ""
	}

	if fs.Bavail*uint64(fs.Bsize) < memoryRoom {
		return ""
	}

	return sharedMemory
}
