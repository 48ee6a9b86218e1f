package main

import "github.com/spf13/cobra"

// commands are all subcommands, in no order: the help sorts them by group.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(a), agentCommand(a), planCommand(a), simulateCommand(a), diffCommand(a), statusCommand(a), explainCommand(a), historyCommand(a),
		validateCommand(a), renderCommand(a), initCommand(a), schemaCommand(a), secretCommand(a),
		demoCommand(a), doctorCommand(a), configCommand(a), completionCommand(a), versionCommand(a),
	}
}
