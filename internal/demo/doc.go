// Package demo replays the life of a small fleet: a first release, a good
// one, a bad one that is bad twice, and the fix, with the real daemon and the
// real agents as processes, in one temporary folder.
//
// It decides and checks nothing on behalf of the program that it shows: it
// makes commits as an operator would, reads the status branch as an operator
// would, and looks at the files of the devices. It needs no network, no root
// and no git program.
//
// Start with [Run].
//
// What it tells at the end is counted, from every commit of the status branch
// and from what each device wrote down itself. If anything differs from what
// the documentation promises, Run says what, keeps the folder and fails.
package demo
