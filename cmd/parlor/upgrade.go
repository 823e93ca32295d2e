package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/upgrade"
	"github.com/spf13/cobra"
)

func upgradeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "upgrade", Short: "Show how far an upgrade of the nodes is, end it, or migrate an old store",
	}
	c.AddCommand(upgradeCheckCommand(), upgradeFinishCommand(), migrateCommand())
	return c
}

func upgradeCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Args: cobra.NoArgs,
		Short: "Print the layout of the store and what finish would do; exit 1 while nodes are in its way",
		RunE: func(c *cobra.Command, _ []string) error {
			asJSON, _ := c.Flags().GetBool("json")
			return withDomains(c, func(d domains) error {
				plan, err := upgrade.ReadPlan(c.Context(), d.db)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(c.OutOrStdout(), plan)
				} else {
					err = printPlan(c.OutOrStdout(), plan)
				}
				if err == nil && len(plan.Behind) > 0 && plan.Next == plan.Layout {
					err = plan.Problem()
				}
				return err
			})
		},
	}
	c.Flags().Bool("json", false, "print JSON")
	return settingFlags(c, "redis-url", "config")
}

func upgradeFinishCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "finish", Args: cobra.NoArgs,
		Short: "Raise the layout of the store to the newest that all nodes read: the release before cannot come back",
		Long: "finish ends an upgrade. Until then every node writes the layout that the release before reads, and you\n" +
			"can go back to it. finish changes one number and nothing else: what is stored stays readable. It is refused\n" +
			"while a node of an older release runs, or was killed less than a minute ago. The trail has who did it.",
		RunE: func(c *cobra.Command, _ []string) error {
			return withDomains(c, func(d domains) error {
				ctx := c.Context()
				plan, err := upgrade.Finish(ctx, d.db)
				if err != nil {
					return err
				}
				type layout struct {
					Layout int `json:"layout"`
				}
				d.recordInTrail(ctx, nil, trail.Write{
					Action: "finishUpgrade", Target: "store", Before: layout{plan.Layout}, After: layout{plan.Next},
				})
				_, err = fmt.Fprintf(c.OutOrStdout(), "finished: the store has layout %d, before %d; "+
					"nodes write it within two seconds\n", plan.Next, plan.Layout)
				return err
			})
		},
	}
	return settingFlags(c, "redis-url", "config")
}

func printPlan(to io.Writer, p upgrade.Plan) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { _, _ = fmt.Fprintf(w, "%s\t%v\n", name, value) }
	release, _ := version()
	line("store", fmt.Sprintf("layout %d", p.Layout))
	line("this release", fmt.Sprintf("%s reads layouts %d to %d", release, p.Oldest, p.Newest))
	for _, n := range p.Nodes {
		line("node", fmt.Sprintf("%v reads up to layout %d", n, n.Newest))
	}
	if len(p.Nodes) == 0 {
		line("nodes", "none has reported within the last minute")
	}
	if problem := p.Problem(); problem == nil {
		line("finish", fmt.Sprintf("raises the layout to %d; the release before cannot come back then", p.Next))
	} else {
		line("finish", problem)
	}
	return w.Flush()
}
