package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/rooms"
	"github.com/spf13/cobra"
)

func roomsCommand() *cobra.Command {
	c := &cobra.Command{Use: "rooms", Short: "Look at rooms whose result a leaderboard or a tournament did not take"}
	c.AddCommand(roomsParkedCommand())
	return c
}

func roomsParkedCommand() *cobra.Command {
	var retry string
	c := &cobra.Command{
		Use: "parked", Args: cobra.NoArgs,
		Short: "Print the ended rooms that are parked, and why; --retry tries one again",
		Long: "A room whose result its leaderboard or its tournament refuses is parked, so that no other room waits for\n" +
			"it. parked prints each with the consumer that refused it (boards, or t.<tournament>.<match>.<attempt>),\n" +
			"why, and when the room ended, which is moments before. After what is wrong was put right, --retry applies\n" +
			"the result, once, however often it is tried. Nodes may go on serving. --room-shards must be that of the\n" +
			"nodes.",
		RunE: func(c *cobra.Command, _ []string) error {
			asJSON, _ := c.Flags().GetBool("json")
			return withDomains(c, func(d domains) error {
				if retry != "" {
					return d.retryDeadLetter(c, retry, asJSON)
				}
				list, err := d.rooms.DeadLetters(c.Context(), operator)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(c.OutOrStdout(), list)
				default:
					return printDeadLetters(c.OutOrStdout(), list)
				}
			})
		},
	}
	c.Flags().StringVar(&retry, "retry", "", "the id of a parked room to apply again")
	c.Flags().Bool("json", false, "print JSON")
	return settingFlags(c, "redis-url", "room-shards", "config")
}

// retryDeadLetter applies the dead letter of a room again, and records that.
func (d domains) retryDeadLetter(c *cobra.Command, roomID string, asJSON bool) error {
	room, err := d.rooms.RetryDeadLetter(c.Context(), operator, roomID)
	if room.RoomID != "" {
		d.recordInTrail(c.Context(), err, trail.Write{
			Action: "retryParkedRoom", Target: "room:" + room.RoomID, Before: room,
		})
	}
	if err != nil {
		return err
	}
	d.nameTournaments(c.Context())
	if asJSON {
		return printJSON(c.OutOrStdout(), room)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "applied: room %s\n", room.RoomID)
	return err
}

func printDeadLetters(out io.Writer, list []rooms.DeadLetter) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "room\tgame\tconsumer\tended\tproblem")
	for _, r := range list {
		game, consumer, ended := "-", "-", "-"
		if r.GameID != 0 {
			game, consumer, ended = fmt.Sprint(r.GameID), r.Consumer, wire.FormatTime(r.EndedAt)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.RoomID, game, consumer, ended, r.Problem)
	}
	return w.Flush()
}
