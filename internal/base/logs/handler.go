package logs

import (
	"io"
	"log/slog"
	"time"
)

// NewHandler returns the handler of a process: lines of JSON, or of text.
func NewHandler(to io.Writer, level slog.Leveler, asJSON bool) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: addUnit}
	if asJSON {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// addUnit makes a duration a text. slog's JSON has it as an integer of nanoseconds.
func addUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(roundDuration(a.Value.Duration()).String())
	}
	return a
}

// roundDuration returns a duration in the precision that a reader can use.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d.Abs() >= time.Minute:
		return d.Round(time.Second)
	case d.Abs() >= time.Second:
		return d.Round(time.Millisecond)
	default:
		return d.Round(time.Microsecond)
	}
}
