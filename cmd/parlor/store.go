package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/history"
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
		Short: "Print what is known of the store's history; exit 1 while there is something to accept",
		Long: "status prints which installation the store has, and what nodes noticed. The exit status is 1 while money\n" +
			"is stopped, while a loss is not accepted, and for a store that is empty or has another layout. It is 69 when\n" +
			"the store could not be read.",
		RunE: func(c *cobra.Command, _ []string) error {
			asJSON, _ := c.Flags().GetBool("json")
			s, err := loadSettings(c, config.ModeTool, "redis-url")
			if err != nil {
				return err
			}
			status, err := readStoreStatus(c.Context(), s)
			switch {
			case err != nil:
				return noVerdictError{err}
			case asJSON:
				err = printJSON(c.OutOrStdout(), status)
			default:
				err = printStatus(c.OutOrStdout(), status)
			}
			return cmp.Or(err, status.verdict())
		},
	}
	c.Flags().Bool("json", false, "print JSON")
	return settingFlags(c, "redis-url", "config")
}

// storeStatus is the output of `parlor store status`.
type storeStatus struct {
	history.Status
	Layout string `json:"layout"` // "" when no node has written it yet
	// StoppedGames are the games that are stopped by themselves.
	StoppedGames []moneyhalt.Halt `json:"stoppedGames"`
	// Problem is why nothing else is read of the store, "" for an installation of this layout.
	Problem string `json:"problem"`

	hasOtherLayout bool
}

// readStoreStatus reads the status of any store. If the store has another layout, it reads only the
// layout and the store's name.
func readStoreStatus(ctx context.Context, s config.Settings) (storeStatus, error) {
	db, found, err := openAnyStore(ctx, s)
	if err != nil {
		return storeStatus{}, err
	}
	defer func() { _ = db.Close() }()
	status := storeStatus{Layout: found.Layout, Problem: found.Problem(), hasOtherLayout: found.HasOtherLayout()}
	if status.hasOtherLayout {
		status.Status = history.Status{Installation: found.ID, Former: []string{}, Losses: []history.Loss{}}
		status.StoppedGames = []moneyhalt.Halt{}
		return status, nil
	}
	if status.Status, err = history.ReadStatus(ctx, db); err == nil {
		status.StoppedGames, err = moneyhalt.ReadAll(ctx, db)
	}
	return status, err
}

// verdict returns an error while an operator has something to look at.
func (s storeStatus) verdict() error {
	losses := s.NotAccepted()
	switch {
	case s.Halt != nil:
		return errors.New(s.Halt.Sentence())
	case s.Problem != "":
		return errors.New(s.Problem)
	case len(losses) > 0:
		return fmt.Errorf("%d losses are not accepted; an operator can accept them with: parlor store accept", len(losses))
	case len(s.StoppedGames) > 0:
		return fmt.Errorf("the money of %d games is stopped: see parlor audit", len(s.StoppedGames))
	}
	return nil
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
			s, err := loadSettings(c, config.ModeTool, "redis-url")
			if err != nil {
				return err
			}
			ctx := c.Context()
			db, found, err := openAnyStore(ctx, s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			if isEmptied := found.IsMissing() && found.IsStopped; found.Problem() != "" && !isEmptied {
				return storeError{found}
			}
			before, after, err := history.Accept(ctx, db)
			if err != nil {
				return err
			}
			newDomains(db, nil, s, config.ModeTool).recordInTrail(ctx, nil, trail.Write{
				Action: "acceptStore", Target: "store", Before: before, After: struct {
					Installation string `json:"installation"`
					Epoch        int64  `json:"epoch"`
					Reason       string `json:"reason"`
				}{after.Installation, after.Epoch, reason},
			})
			_, err = fmt.Fprintf(c.OutOrStdout(), "accepted: installation %s, epoch %d; nodes go on within two seconds\n",
				after.Installation, after.Epoch)
			return err
		},
	}
	addReasonFlag(c)
	return settingFlags(c, "redis-url", "config")
}

func printStatus(to io.Writer, s storeStatus) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { _, _ = fmt.Fprintf(w, "%s\t%v\n", name, value) }
	line("installation", cmp.Or(s.Installation, "none: the store is empty"))
	line("layout", cmp.Or(s.Layout, "none"))
	if s.hasOtherLayout {
		line("history", "not read: the layout is another one")
		return w.Flush()
	}
	line("epoch", s.Epoch)
	line("accepted epoch", s.Accepted)
	switch {
	case s.Halt != nil:
		line("money", "stopped at "+wire.FormatTime(s.Halt.At)+" by "+s.Halt.Node+": "+string(s.Halt.Cause))
	case s.Problem == "":
		line("money", "goes on")
	}
	for _, stop := range s.StoppedGames {
		line("stopped", fmt.Sprintf("game %d, %s: %s (%s)", stop.GameID, wire.FormatTime(stop.At), stop.Detail, stop.Cause))
	}
	for _, l := range s.Losses {
		name := "lost"
		if l.Epoch <= s.Accepted {
			name = "lost, accepted"
		}
		line(name, fmt.Sprintf("epoch %d, %s: %s", l.Epoch, wire.FormatTime(l.At), l.Sentence()))
	}
	return w.Flush()
}
