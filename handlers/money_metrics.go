package handlers

import (
	"strconv"

	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/prometheus/client_golang/prometheus"
)

// moneyCollector exports what the audit that runs all the time found.
type moneyCollector struct{ alarm *audit.Alarm }

var moneyDeltaDescription = prometheus.NewDesc("parlor_money_delta",
	"Minor units of a token that a game has too few of, by the last audit of this node; the nodes audit in turns: "+
		"anything but 0 stops the money of the game.", []string{"game", "token"}, nil)

func (*moneyCollector) Describe(out chan<- *prometheus.Desc) { out <- moneyDeltaDescription }

func (c *moneyCollector) Collect(out chan<- prometheus.Metric) {
	for _, d := range c.alarm.Deltas() {
		out <- prometheus.MustNewConstMetric(moneyDeltaDescription, prometheus.GaugeValue, float64(d.Units),
			strconv.FormatInt(d.GameID, 10), d.TokenCode)
	}
}
