package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/spf13/cobra"
)

func boardsCommand() *cobra.Command {
	c := &cobra.Command{Use: "boards", Short: "Look at leaderboards"}
	c.AddCommand(boardsTopCommand(), boardsVerifyCommand())
	return c
}

// boardsFlags adds the flags that both commands have.
func boardsFlags(c *cobra.Command) *cobra.Command {
	c.Flags().Int64("season", 0, "the number of a season; 0 is the current one for top, all that are kept for verify")
	return gameFlags(c)
}

// withBoards calls do with the leaderboards on the store of the settings.
func withBoards(c *cobra.Command, do func(boards *leaderboards.Service, game, season int64) error) error {
	season, _ := c.Flags().GetInt64("season")
	if season < 0 {
		return errors.New("--season must be the number of a season")
	}
	return withGame(c, func(d domains, game int64) error { return do(d.boards, game, season) })
}

func boardsTopCommand() *cobra.Command {
	limit := 10
	c := &cobra.Command{
		Use: "top board", Short: "Print the first entries of a leaderboard", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			segment, _ := c.Flags().GetString("segment")
			asJSON, _ := c.Flags().GetBool("json")
			return withBoards(c, func(boards *leaderboards.Service, game, season int64) error {
				scope := leaderboards.Scope{Season: season, Segment: segment}
				entries, _, err := boards.Entries(c.Context(), operator, game, args[0], scope, "", limit)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(c.OutOrStdout(), entries)
				default:
					return printEntries(c.OutOrStdout(), entries)
				}
			})
		},
	}
	addLimitFlag(c, &limit, "entries")
	c.Flags().String("segment", "", "only the players of a segment, such as country:DE")
	return boardsFlags(c)
}

func printEntries(out io.Writer, entries []leaderboards.Entry) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "rank\tscore\treached\tplayer\tname\t")
	for _, e := range entries {
		score, err := wire.Marshal(e.Score)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t\n",
			e.Rank, score, wire.FormatTime(e.ReachedAt), e.User.ID, e.User.Username)
	}
	return w.Flush()
}

func boardsVerifyCommand() *cobra.Command {
	return boardsFlags(&cobra.Command{
		Use: "verify [board]", Short: "Compare the entries of leaderboards with their order; exit 1 when some do not fit",
		Long: "verify reads every entry of a leaderboard, of all leaderboards of the game without one, and looks it up in\n" +
			"the order of its season and of its segments, and the other way round. It changes nothing; nodes may go on\n" +
			"serving.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			asJSON, _ := c.Flags().GetBool("json")
			return withBoards(c, func(boards *leaderboards.Service, game, season int64) error {
				reports, err := verifyBoards(c, boards, game, season, args)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(c.OutOrStdout(), reports)
				} else {
					printVerifications(c.OutOrStdout(), reports)
				}
				for _, r := range reports {
					if err == nil && len(r.Differences) > 0 {
						err = errReported
					}
				}
				return err
			})
		},
	})
}

// verifyBoards verifies the seasons of the named board, of all boards without one. season is 0 for
// all that are kept.
func verifyBoards(
	c *cobra.Command, boards *leaderboards.Service, game, season int64, named []string,
) ([]leaderboards.Verification, error) {
	ctx := c.Context()
	for after, all := "", len(named) == 0; all; {
		page, next, err := boards.List(ctx, operator, game, after, wire.MaxPageSize)
		if err != nil {
			return nil, err
		}
		for _, b := range page {
			named = append(named, b.Board)
		}
		after, all = next, next != ""
	}
	reports := []leaderboards.Verification{}
	for _, board := range named {
		numbers := []int64{season}
		if season == 0 {
			var err error
			if numbers, err = seasonNumbers(c, boards, game, board); err != nil {
				return nil, err
			}
		}
		for _, number := range numbers {
			report, err := boards.Verify(ctx, operator, game, board, number)
			if err != nil {
				return nil, err
			}
			reports = append(reports, report)
		}
	}
	return reports, nil
}

// seasonNumbers returns the seasons of a board that have begun and are kept.
func seasonNumbers(
	c *cobra.Command, boards *leaderboards.Service, game int64, board string,
) (numbers []int64, err error) {
	for before := int64(0); ; {
		page, next, err := boards.ListSeasons(c.Context(), operator, game, board, before, wire.MaxPageSize)
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			numbers = append(numbers, one.Season)
		}
		if before = next; next == 0 {
			return numbers, nil
		}
	}
}

func printVerifications(out io.Writer, reports []leaderboards.Verification) {
	for _, r := range reports {
		verdict := "fits"
		if len(r.Differences) > 0 {
			verdict = "DOES NOT FIT"
		}
		_, _ = fmt.Fprintf(out, "%s, season %d: %d entries, %d hidden: %s\n",
			r.Board, r.Season, r.Entries, r.Hidden, verdict)
		for _, d := range r.Differences {
			who := ""
			if d.UserID != 0 {
				who = fmt.Sprintf("player %d ", d.UserID)
			}
			_, _ = fmt.Fprintf(out, "  %s%s\n", who, d.Problem)
		}
	}
}
