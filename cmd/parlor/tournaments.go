package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/spf13/cobra"
)

func tournamentsCommand() *cobra.Command {
	c := &cobra.Command{Use: "tournaments", Short: "Look at tournaments, and cancel one"}
	c.AddCommand(tournamentsListCommand(), tournamentsShowCommand(), tournamentsCancelCommand())
	return c
}

func tournamentsListCommand() *cobra.Command {
	limit := 10
	c := &cobra.Command{
		Use: "list", Short: "Print the newest tournaments of a game", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			status, _ := c.Flags().GetString("status")
			asJSON, _ := c.Flags().GetBool("json")
			return withGame(c, func(d domains, game int64) error {
				list := []tournaments.Tournament{}
				query := tournaments.ListQuery{GameID: game, Status: tournaments.Status(strings.ToUpper(status)), Limit: limit}
				for len(list) < limit { // a page of a filtered list may be short
					page, next, err := d.tours.List(c.Context(), operator, query)
					if err != nil {
						return err
					}
					list = append(list, page...)
					if query.After = next; next == 0 {
						break
					}
				}
				list = list[:min(limit, len(list))]
				if asJSON {
					return printJSON(c.OutOrStdout(), list)
				}
				return printTournaments(c.OutOrStdout(), list)
			})
		},
	}
	addLimitFlag(c, &limit, "tournaments")
	c.Flags().String("status", "", "only those in a state, such as RUNNING")
	return gameFlags(c)
}

func printTournaments(out io.Writer, list []tournaments.Tournament) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "id\tstatus\tformat\tplayers\tround\tpot\tstarts\tname")
	for i := range list {
		t := &list[i]
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%d of %d\t%d\t%s\t%s\t%s\n", t.ID, t.Status, t.Format, t.Entrants,
			t.MaxEntrants, t.Round, formatTokens(t, t.Pot), wire.FormatTime(t.StartsAt), t.Name)
	}
	return w.Flush()
}

// formatTokens returns an amount with its token, "-" in a tournament without one.
func formatTokens(t *tournaments.Tournament, a wallet.Amount) string {
	if t.EntryToken == nil {
		return "-"
	}
	return formatAmount(a) + " " + t.EntryToken.Code
}

// tournamentID returns the tournament that an argument names.
func tournamentID(arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return 0, errors.New("the tournament must be its number, which `parlor tournaments list` prints")
	}
	return id, nil
}

// tournamentReport is the JSON output of show.
type tournamentReport struct {
	Tournament tournaments.Tournament `json:"tournament"`
	Matches    []tournaments.Match    `json:"matches"` // of the newest round
	Standings  []tournaments.Standing `json:"standings"`
}

func tournamentsShowCommand() *cobra.Command {
	limit := 10
	c := &cobra.Command{
		Use: "show tournament", Args: cobra.ExactArgs(1),
		Short: "Print a tournament: its state, the matches of its newest round, and who leads",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := tournamentID(args[0])
			if err == nil {
				err = checkLimit(limit)
			}
			if err != nil {
				return err
			}
			asJSON, _ := c.Flags().GetBool("json")
			return withGame(c, func(d domains, game int64) error {
				r, err := d.reportTournament(c, game, id, limit)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(c.OutOrStdout(), r)
				default:
					return r.print(c.OutOrStdout())
				}
			})
		},
	}
	addLimitFlag(c, &limit, "matches and places")
	return gameFlags(c)
}

func (d domains) reportTournament(c *cobra.Command, game, id int64, limit int) (r tournamentReport, err error) {
	ctx := c.Context()
	if r.Tournament, err = d.tours.Get(ctx, operator, game, id); err != nil {
		return r, err
	}
	r.Matches = []tournaments.Match{}
	if round := r.Tournament.Round; round > 0 {
		if r.Matches, _, err = d.tours.Matches(ctx, operator, game, id, round, "", limit); err != nil {
			return r, err
		}
	}
	r.Standings, _, err = d.tours.Standings(ctx, operator, game, id, "", limit)
	return r, err
}

func (r *tournamentReport) print(out io.Writer) error {
	t := &r.Tournament
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name string, format string, args ...any) {
		_, _ = fmt.Fprintf(w, name+"\t"+format+"\n", args...)
	}
	line("name", "%s", t.Name)
	status := string(t.Status)
	if t.CancelReason != nil {
		status += ", " + string(*t.CancelReason)
	}
	line("status", "%s", status)
	line("format", "%s", t.Format)
	line("players", "%d, from %d to %d", t.Entrants, t.MinEntrants, t.MaxEntrants)
	line("checked in", "%d", t.CheckedIn)
	line("fee", "%s", formatTokens(t, t.EntryFee))
	line("pot", "%s", formatTokens(t, t.Pot))
	line("starts", "%s", wire.FormatTime(t.StartsAt))
	for _, one := range []struct {
		name string
		at   *time.Time
	}{{"started", t.StartedAt}, {"ended", t.EndedAt}} {
		if one.at != nil {
			line(one.name, "%s", wire.FormatTime(*one.at))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return errors.Join(printMatches(out, t.Round, r.Matches), printStandings(out, t, r.Standings))
}

func printMatches(out io.Writer, round int, matches []tournaments.Match) error {
	if len(matches) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\nround %d\tstatus\tplayers\twinner\troom\n", round)
	for _, m := range matches {
		players := make([]string, len(m.Players))
		for i, p := range m.Players {
			players[i] = strconv.FormatInt(p.UserID, 10)
		}
		winner, room := "-", "-"
		if m.WinnerID != nil {
			winner = strconv.FormatInt(*m.WinnerID, 10)
		}
		if m.RoomID != nil {
			room = *m.RoomID
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.ID, m.Status, strings.Join(players, " and "), winner, room)
	}
	return w.Flush()
}

func printStandings(out io.Writer, t *tournaments.Tournament, standings []tournaments.Standing) error {
	if len(standings) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nplace\tpoints\tplayer\tname\tprize")
	for _, s := range standings {
		points, err := wire.Marshal(s.Points)
		if err != nil {
			return err
		}
		prize := "-"
		if s.Payout != nil {
			prize = formatTokens(t, *s.Payout)
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\n", s.Place, points, s.User.ID, s.User.Username, prize)
	}
	return w.Flush()
}

func tournamentsCancelCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cancel tournament", Args: cobra.ExactArgs(1),
		Short: "Cancel a tournament: every fee goes back",
		Long: "cancel does what POST /api/v1/admin/games/{gameId}/tournaments/{tournamentId}/cancel does. The nodes give\n" +
			"the fees back and return the added prize. A tournament whose prizes are being paid cannot\n" +
			"be cancelled; one that is cancelled already stays so. The trail has who cancelled it, and why.",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := tournamentID(args[0])
			if err != nil {
				return err
			}
			reason, err := readReason(c)
			if err != nil {
				return err
			}
			asJSON, _ := c.Flags().GetBool("json")
			return withGame(c, func(d domains, game int64) error {
				t, err := d.cancelTournament(c, game, id, reason)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(c.OutOrStdout(), t)
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "tournament %d is %s\n", t.ID, t.Status)
				return err
			})
		},
	}
	addReasonFlag(c)
	return gameFlags(c)
}

// cancelTournament cancels a tournament, and records that unless it was cancelled before.
func (d domains) cancelTournament(
	c *cobra.Command, game, id int64, reason string,
) (tournaments.Tournament, error) {
	ctx := c.Context()
	before, err := d.tours.Get(ctx, operator, game, id)
	if err != nil {
		return before, err
	}
	result, err := d.tours.Cancel(ctx, operator, game, id, idempotency.Receipt{})
	if before.Status != tournaments.Cancelling && before.Status != tournaments.Cancelled {
		type state struct {
			Status tournaments.Status `json:"status,omitzero"`
			Reason string             `json:"reason,omitzero"`
		}
		d.recordInTrail(ctx, err, trail.Write{
			Action: "cancelTournament", Target: fmt.Sprintf("tournament:%d.%d", game, id),
			Before: state{Status: before.Status}, After: state{result.Tournament.Status, reason},
		})
		d.nameTournaments(ctx)
	}
	return result.Tournament, err
}

// nameTournaments makes the nodes go on at once with what a command has changed.
func (d domains) nameTournaments(ctx context.Context) {
	if err := d.tours.NameChanged(ctx); err != nil {
		slog.WarnContext(ctx, "the nodes go on within a minute", "error", err)
	}
}
