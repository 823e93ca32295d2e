//go:build linux

package balancertest

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var metricLine = regexp.MustCompile(`^[a-z].* (\S+)\n$`)

// metrics returns the values of the metrics whose lines start with a text. There are none
// while they cannot be read.
func (b *Balancer) metrics(start string) (values []float64) {
	response, err := http.Get(b.MetricsURL)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if m := metricLine.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, start) {
			if value, err := strconv.ParseFloat(m[1], 64); err == nil {
				values = append(values, value)
			}
		}
	}
	return values
}
