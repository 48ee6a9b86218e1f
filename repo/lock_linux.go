package repo

import "syscall"

// networkFS are the file systems (statfs(2)) on which a file may be in use on
// another machine, or outside of this one, without flock showing it here.
var networkFS = map[uint32]bool{
	0x6969:     true, // NFS
	0x517b:     true, // SMB
	0xff534d42: true, // CIFS
	0xfe534d42: true, // SMB2
	0x65735546: true, // FUSE, virtiofs
	0x01021997: true, // 9p
	0x00c36400: true, // Ceph
	0x5346414f: true, // AFS
	0x01161970: true, // GFS2
	0x7461636f: true, // OCFS2
	0x0bd00bd0: true, // Lustre
}

// locksAreShared tells whether flock on a file of that folder is seen by
// everybody who works there.
func locksAreShared(dir string) bool {
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && !networkFS[uint32(st.Type)]
}
