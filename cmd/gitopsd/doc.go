// Gitopsd runs a fleet of Linux devices from a git repository. This package
// is the command line: it reads flags, environment and configuration files,
// joins the other packages, and turns what they say into text, JSON and exit
// codes.
//
// It decides nothing about a device: package planner does, package sweep
// publishes it, packages agentsync and reconcile carry it out on the device,
// package schema says what a document means.
//
// Start reading at run in main.go; each subcommand has a file of its name.
//
// Results go to standard output and narration to standard error. JSON output
// carries apiVersion and kind, its lists are never null, and its fields are
// only ever added to. Exit codes are in exit.go.
package main
