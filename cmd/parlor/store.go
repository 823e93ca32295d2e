package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/history"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/trail"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "store", Short: "Show what the store lost, and let money go on after an operator has looked at it",
	}
	c.AddCommand(storeStatusCommand(), storeAcceptCommand())
	return c
}

func storeStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Args: cobra.NoArgs,
		Short: "Print what is known of the store's history; exit 1 while money is stopped",
		RunE: func(c *cobra.Command, _ []string) error {
			asJSON, _ := c.Flags().GetBool("json")
			return withStore(c, func(ctx context.Context, db *redisdb.DB) error {
				status, err := history.ReadStatus(ctx, db)
				switch {
				case err != nil:
					return err
				case asJSON:
					err = printJSON(c.OutOrStdout(), status)
				default:
					err = printStatus(c.OutOrStdout(), status)
				}
				if err == nil && status.Stop != nil {
					err = errors.New(status.Stop.Sentence())
				}
				return err
			})
		},
	}
	c.Flags().Bool("json", false, "print JSON")
	return settingFlags(c, "redis-url", "config")
}

func storeAcceptCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "accept", Args: cobra.NoArgs,
		Short: "Make what the store has the history: money goes on",
		Long: "accept ends what /readyz reports of a store that lost something, was emptied, restored or replaced.\n" +
			"It changes no balance and makes nothing up for what is missing: read `parlor store status`, and the log of\n" +
			"the nodes, and keep them. Nodes go on within two seconds. The trail has who accepted what, and why.",
		RunE: func(c *cobra.Command, _ []string) error {
			reason, err := readReason(c)
			if err != nil {
				return err
			}
			return withDomains(c, func(d domains) error {
				ctx := c.Context()
				before, after, err := history.Accept(ctx, d.db)
				if err != nil {
					return err
				}
				d.recordInTrail(ctx, nil, trail.Write{
					Action: "acceptStore", Target: "store", Before: before, After: struct {
						Installation string `json:"installation"`
						Epoch        int64  `json:"epoch"`
						Reason       string `json:"reason"`
					}{after.Installation, after.Epoch, reason},
				})
				_, err = fmt.Fprintf(c.OutOrStdout(), "accepted: installation %s, epoch %d; nodes go on within two seconds\n",
					after.Installation, after.Epoch)
				return err
			})
		},
	}
	addReasonFlag(c)
	return settingFlags(c, "redis-url", "config")
}

func printStatus(to io.Writer, s history.Status) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { _, _ = fmt.Fprintf(w, "%s\t%v\n", name, value) }
	if s.Installation == "" {
		line("installation", "none: the store is empty")
	} else {
		line("installation", s.Installation)
	}
	line("epoch", s.Epoch)
	line("accepted epoch", s.Accepted)
	if s.Stop == nil {
		line("money", "goes on")
	} else {
		line("money", "stopped at "+wire.FormatTime(s.Stop.At)+" by "+s.Stop.Node+": "+string(s.Stop.Cause))
	}
	for _, l := range s.Losses {
		name := "lost"
		if l.Epoch <= s.Accepted {
			name = "lost, accepted"
		}
		line(name, fmt.Sprintf("epoch %d, %s: %s", l.Epoch, wire.FormatTime(l.At), describeLoss(l)))
	}
	return w.Flush()
}

func describeLoss(l history.Loss) string {
	return fmt.Sprintf("game %d, at least %d ledger entries: %d were there, %d are", l.GameID, l.Entries(), l.Known,
		l.Present)
}
