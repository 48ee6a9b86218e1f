package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// devicePoll is the JSON of gitopsd agent run-now.
type devicePoll struct {
	schema.TypeMeta
	Fetched *reconcile.Fetched `json:"fetched,omitempty"`
	Ran     *reconcile.Ran     `json:"ran,omitempty"` // with --wait, or where nothing was fetched
}

func agentRunNowCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	var wait bool
	cmd := &cobra.Command{
		Use:   "run-now",
		Short: "Have the agent ask for its assignment at once",
		Long: `Have the running agent read its delivery ref now instead of with its next poll,
and print the commit of before and now. What is assigned still begins only when
nothing keeps it: busy and held devices wait, and a daemon decides who may move.
An update that goes on is waited for first.

Exit codes: 0 the repository answered; with --wait the work is done, there was
none, or it is deferred; 1 it did not, or the work failed.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent run-now
  gitopsd agent run-now --wait
  gitopsd agent run-now --wait -o json | jq -r .ran.summary`,
	}
	options := bindLocal(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for what comes of it, an update included")
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		asText := format.value == "text"
		doc := devicePoll{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DevicePoll"}}
		nobody, err := d.ask(cmd.Context(), agentsocket.Request{Do: agentsocket.DoRunNow}, func(r agentsocket.Reply) bool {
			if r.Fetched == nil {
				doc.Ran = r.Ran
				return true
			}
			if doc.Fetched = r.Fetched; asText {
				fmt.Fprintln(a.out, clean(fetchedText(r.Fetched)))
			}
			return !wait
		})
		switch {
		case err != nil:
			return err
		case nobody:
			return withHint(fmt.Errorf("no agent answers at %s", agentsocket.Path(d.root)), "%s", d.pollHint())
		case !asText:
			err = writeJSON(a.out, doc)
		case doc.Ran != nil:
			fmt.Fprintln(a.out, clean(doc.Ran.Summary))
		}
		if err == nil && doc.Ran != nil && doc.Ran.Exit != 0 {
			return &exitError{code: exitCannot}
		}
		return err
	}
	return cmd
}

// pollHint is how to poll without an agent that answers.
func (d *device) pollHint() string {
	if d.isHost() {
		return "systemctl start gitopsd-agent; gitopsd agent --once polls without a service"
	}
	return d.startHint()
}

func fetchedText(f *reconcile.Fetched) string {
	commit := func(c string) string { return or(view.Short(c), "none") }
	text := fmt.Sprintf("fetched %s", commit(f.To))
	if f.From != f.To {
		text = fmt.Sprintf("fetched %s → %s", commit(f.From), commit(f.To))
	}
	if f.Assigned == "" {
		return fmt.Sprintf("%s: nothing is assigned; on %s", text, f.Current)
	}
	return fmt.Sprintf("%s: %s is assigned; on %s", text, f.Assigned, f.Current)
}
