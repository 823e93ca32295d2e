package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

func TestDurationsHaveAUnit(t *testing.T) {
	for name, asJSON := range map[string]bool{"text": false, "JSON": true} {
		var text bytes.Buffer
		log := slog.New(NewHandler(&text, slog.LevelInfo, asJSON)).With("b", 2*time.Minute)
		log.Info("m", "a", 3200*time.Millisecond, slog.Group("g", "c", 1234567*time.Nanosecond),
			"d", 90*time.Minute+300*time.Millisecond)
		for _, want := range []string{"3.2s", "2m0s", "1.235ms", "1h30m0s"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s has no %s: %s", name, want, &text)
			}
		}
	}
}

func wrap(err error) error {
	return fmt.Errorf("read a wallet: %w", fmt.Errorf("run it: %w (%w)", err, io.EOF))
}

func TestOnlyErrorsOfTheStoreAreHeldBack(t *testing.T) {
	away, other := wrap(apierror.StoreUnavailable), errors.New("a wallet cannot be decoded")
	for name, c := range map[string]struct {
		err  error
		held bool
	}{
		"an outage":                  {away, true},
		"an outage, not wrapped":     {apierror.StoreUnavailable.WithReason("x"), true},
		"an unconfirmed change":      {wrap(apierror.OutcomeUnknown), true},
		"two outages":                {errors.Join(away, wrap(apierror.StoreUnavailable)), true},
		"an outage and another":      {errors.Join(away, other), false},
		"an outage, and full":        {errors.Join(away, wrap(apierror.StoreFull)), false},
		"a full store":               {wrap(apierror.StoreFull), false},
		"another":                    {other, false},
		"another outage with a code": {fmt.Errorf("bucket: %w", io.ErrUnexpectedEOF), false},
	} {
		var text bytes.Buffer
		handler, s := NewStoreErrors(NewHandler(&text, slog.LevelInfo, false))
		disown := s.Own()
		slog.New(handler).With("x", 1).WithGroup("g").Error("work failed", "error", c.err)
		if held := text.Len() == 0; held != c.held {
			t.Errorf("%s: held back %v: %s", name, held, &text)
		}
		s.Discard()
		disown()
		if text.Len() != 0 && c.held {
			t.Errorf("%s: %s", name, &text)
		}
	}
}

func TestHeldLinesBecomeOneAMinute(t *testing.T) {
	var text bytes.Buffer
	handler, s := NewStoreErrors(NewHandler(&text, slog.LevelInfo, false))
	log := slog.New(handler)
	away := wrap(apierror.StoreUnavailable)
	log.Warn("nobody decides yet", "error", away)
	disown := s.Own()
	for range maxHeld + 9 {
		log.Warn("work failed", "error", away)
	}
	s.Release(time.Now().Add(-time.Minute)) // it is not known yet
	first := time.Now()
	s.Release(first)
	log.Warn("work failed again", "error", away)
	s.Release(first.Add(releaseInterval - time.Second))
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "nobody decides yet") ||
		!strings.Contains(lines[1], fmt.Sprintf(`msg="calls failed although the store serves" lines=%d `, maxHeld+9)) ||
		!strings.Contains(lines[1], `first="work failed" error="read a wallet: `) {
		t.Fatalf("the log is\n%s", &text)
	}
	text.Reset()
	s.Release(first.Add(releaseInterval))
	if !strings.Contains(text.String(), "lines=1 ") || !strings.Contains(text.String(), "work failed again") {
		t.Errorf("a minute later: %s", &text)
	}
	text.Reset()
	disown()
	log.Warn("nobody decides any more", "error", away)
	if !strings.Contains(text.String(), "nobody decides any more") {
		t.Errorf("after its end: %s", &text)
	}
}

func TestAtTheLevelDebugAHeldLineIsWrittenAtOnceToo(t *testing.T) {
	var text bytes.Buffer
	handler, s := NewStoreErrors(NewHandler(&text, slog.LevelDebug, false))
	defer s.Own()()
	slog.New(handler).Warn("work failed", "error", apierror.StoreUnavailable)
	if !strings.Contains(text.String(), `level=DEBUG msg="work failed"`) {
		t.Errorf("the log is %s", &text)
	}
}
