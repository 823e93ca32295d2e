package story

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.yaml.in/yaml/v3"
)

// selector is a metric in an expression, with what its labels must be.
var (
	selector = regexp.MustCompile(`\b((?:parlor|process|go)_[a-z0-9_]+|up\b)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z]+)=("[^"]*")`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
)

// Every metric and label of the alerts and of the dashboard is one that a node exports.
func TestAlertsAndDashboardUseMetricsThatExist(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	node := nodetest.Start(t, store.URL(), "PARLOR_ARCHIVE=file://"+t.TempDir(), "PARLOR_STATE_DIR="+t.TempDir())
	f := &fixture{t: t, nodes: [2]*nodetest.Node{node, node}}
	op := f.setUp(nil)
	f.guest(op.game, "Ann") // gets GOLD, so that money moves
	var exported string
	redistest.Eventually(t, "the node has audited the game", func() bool {
		exported = metricsOf(t, node)
		return strings.Contains(exported, "\nparlor_money_delta{")
	})
	expressions := append(alertExpressions(t), dashboardExpressions(t)...)
	if len(expressions) < 30 {
		t.Errorf("there are %d expressions", len(expressions))
	}
	for _, expression := range expressions {
		if fault := unknownMetric(expression, exported); fault != "" {
			t.Errorf("%s: no node exports %s", expression, fault)
		}
	}
	for _, wrong := range []string{
		"parlor_reddy", `parlor_replica_confirmations_total{result="lost"}`, "sum by (statuss) (parlor_http_requests_total)",
	} {
		if unknownMetric(wrong, exported) == "" {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
}

func metricsOf(t *testing.T, n *nodetest.Node) string {
	t.Helper()
	response := testkit.Must(http.Get(n.InternalURL + "/metrics"))(t)
	defer func() { _ = response.Body.Close() }()
	text := testkit.Must(io.ReadAll(response.Body))(t)
	return string(text)
}

// unknownMetric returns a metric or label of an expression that a node does not export, or "".
// Prometheus adds the labels job and instance, and the metric up.
func unknownMetric(expression, exported string) string {
	added := []string{"job", "instance", "le"}
	var lines string
	for _, m := range selector.FindAllStringSubmatch(expression, -1) {
		if m[1] == "up" {
			continue
		}
		series := regexp.MustCompile(`(?m)^`+m[1]+`[{ ].*$`).FindAllString(exported, -1)
		if len(series) == 0 {
			return m[1]
		}
		lines += strings.Join(series, "\n")
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(added, label[1]) && !strings.Contains(strings.Join(series, "\n"), label[0]) {
				return m[1] + " with " + label[0]
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			label = strings.TrimSpace(label)
			if !slices.Contains(added, label) && !strings.Contains(lines, label+`="`) {
				return fmt.Sprint("the label ", label)
			}
		}
	}
	return ""
}

func alertExpressions(t *testing.T) (expressions []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	text, err := os.ReadFile("../../deploy/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	testkit.Check(t, err)
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || rule.Expr == "" {
				t.Errorf("an alert without a name or expression: %+v", rule)
			}
			expressions = append(expressions, rule.Expr)
		}
	}
	return expressions
}

func dashboardExpressions(t *testing.T) (expressions []string) {
	t.Helper()
	var file struct {
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	text, err := os.ReadFile("../../deploy/dashboards/parlor.json")
	if err == nil {
		err = wire.Unmarshal(text, &file)
	}
	testkit.Check(t, err)
	for _, panel := range file.Panels {
		if panel.Title == "" || (panel.Type == "row") != (len(panel.Targets) == 0) {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	return expressions
}
