// Package comment writes what a change of a fleet repository would do as one
// comment of a pull request, in the markdown of GitHub.
//
// It compares nothing, knows no forge and sends nothing: package preview
// compares, and whoever calls this posts what comes out, finds it again by
// [Find] and its own name as the author, and puts [Stale] in front when it is
// no longer true.
//
// Call [Render] for a change that is valid, [RenderProblems] for one that is
// not.
//
// The result is never longer than its limit, in whatever unit that is counted,
// and is never cut within a row: rows are left out whole, the least important
// first, and are counted. The verdict always stands. It is deterministic, and
// holds no time that moves, so that equal content is equal bytes. Text from the
// repository may hold anything: in the result it is words of plain letters,
// code, or a block of code, where nobody is mentioned, nothing is linked, and
// no tag begins.
package comment
