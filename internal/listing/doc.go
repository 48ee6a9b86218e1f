// Package listing writes the problems of a fleet where people look for them:
// on a terminal with the line that is meant, in the log and the job summary of
// GitHub Actions, and as JUnit, SARIF and JSON for other programs.
//
// It finds no problems and opens no files: package schema finds them, and the
// command decides which of them are shown, and where a listing goes.
//
// Start with a [Result], and give it to one of the Write functions.
//
// What a fleet repository says is hostile in all of them: it steers no
// terminal, gives the runner of a pipeline no command, and opens no tag, table
// or mention. The same result gives the same bytes. A Result may be written by
// several goroutines, but for its Lines.
package listing
