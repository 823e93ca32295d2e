package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// recorder notes what a check reports.
type recorder struct{ reported, ended string }

func (*recorder) Helper()                             {}
func (*recorder) Context() context.Context            { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) { r.reported = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.ended = fmt.Sprintf(format, args...) }

func TestChecksReportTheErrorAndWhatWasDone(t *testing.T) {
	lost := errors.New("lost")
	pair := func(err error) (int, error) { return 7, err }
	for name, c := range map[string]struct {
		check func(r *recorder)
		want  recorder
	}{
		"no error": {check: func(r *recorder) {
			testkit.Check(r, nil)
			testkit.Report(r, nil)
			testkit.Fails(pair(fmt.Errorf("read: %w", lost)))(r, lost)
			if got := testkit.Must(pair(nil))(r); got != 7 {
				t.Errorf("Must returns %d", got)
			}
		}},
		"Check": {func(r *recorder) { testkit.Check(r, lost) }, recorder{ended: "lost"}},
		"Must":  {func(r *recorder) { testkit.Must(pair(lost))(r, "read %d", 1) }, recorder{ended: "read 1: lost"}},
		"Must2": {func(r *recorder) { testkit.Must2(1, 2, lost)(r) }, recorder{ended: "lost"}},
		"Report": {func(r *recorder) {
			testkit.Report(r, testkit.ErrorOf(pair(lost)), "100%%")
		}, recorder{reported: "100%: lost"}},
		"WantError": {func(r *recorder) {
			testkit.WantError(r, nil, lost, "read")
		}, recorder{reported: "read: <nil>; want lost"}},
	} {
		var r recorder
		if c.check(&r); r != c.want {
			t.Errorf("%s: %+v; want %+v", name, r, c.want)
		}
	}
}
