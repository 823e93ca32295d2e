package main

import (
	"context"
	"os"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/ops/readiness"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/prometheus/client_golang/prometheus"
)

// newHistory returns what watches the history of the money.
func (n *node) newHistory() *history.Service {
	host, _ := os.Hostname() // "" is shown as it is
	h := history.New(n.db, history.Options{
		StateDir: n.settings.StateDir, SigningKeys: revealKeys(n.settings.SigningKeys), Node: host, Log: n.log,
		Changes: n.monitor.Changes, IsConfirmed: n.settings.Durability == string(redisdb.KeepsReplica),
		Prepare: func(ctx context.Context) error {
			n.auth.ForgetStore()
			cache.PurgeAll()
			return n.db.CheckRequirements(ctx, requirements(n.settings))
		},
		Accepted: n.auth.SetAcceptedEpoch, Resync: n.hub.Resync,
	})
	n.monitor.BeforeReady(func(ctx context.Context) error {
		n.nodes.Announce(ctx)
		if err := n.db.ReadLayout(ctx); err != nil {
			n.nodes.Withdraw(ctx)
			return err
		}
		return h.Start(ctx)
	})
	n.monitor.AddChecks(func() []readiness.Check {
		detail, ok := n.nodes.DescribeBuilds()
		return []readiness.Check{{Name: "versions", OK: ok, Detail: detail}}
	})
	n.monitor.AddChecks(func() (list []readiness.Check) {
		for _, c := range h.Checks() {
			list = append(list, readiness.Check{Name: c.Name, OK: c.OK, Detail: c.Detail})
		}
		return list
	})
	return h
}

var errNoReplica = apierror.StoreUnavailable.WithReason(
	"money is refused while no replica of the store can confirm a change")

// allowMoney returns nil when money may be changed now, else why not. In the mode replica no change
// is written that no replica could confirm.
func (n *node) allowMoney() error {
	if err := n.history.AllowMoney(); err != nil {
		return err
	}
	if n.settings.Durability == string(redisdb.KeepsReplica) && !n.monitor.IsReady() {
		return errNoReplica
	}
	return nil
}

// historyCollector exports what the node knows of the history and of its replicas.
type historyCollector struct {
	history *history.Service
	db      *redisdb.DB
}

var (
	epochDesc = prometheus.NewDesc("parlor_history_epoch",
		"Epoch of the store: higher each time that its history went back.", nil, nil)
	historyLossesDesc = prometheus.NewDesc("parlor_history_losses_total",
		"Times that this node noticed that the history of the store went back.", nil, nil)
	entriesLostDesc = prometheus.NewDesc("parlor_history_entries_lost",
		"Ledger entries that the store lost at least, since an operator accepted it last.", nil, nil)
	acknowledgedLostDesc = prometheus.NewDesc("parlor_history_acknowledged_lost",
		"Lost ledger entries that nodes had acknowledged to callers, since an operator accepted the store last.", nil, nil)
	moneyStoppedDesc = prometheus.NewDesc("parlor_money_stopped",
		"1 while money is stopped until an operator accepts the store, else 0.", nil, nil)
	confirmationsDesc = prometheus.NewDesc("parlor_replica_confirmations_total",
		"Batches of writes that a replica confirmed in time, or did not. Only in the mode replica.",
		[]string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (*historyCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		epochDesc, historyLossesDesc, entriesLostDesc, acknowledgedLostDesc, moneyStoppedDesc, confirmationsDesc,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *historyCollector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.history.Stats()
	stopped := 0.0
	if stats.Stopped {
		stopped = 1
	}
	confirmed, missed := c.db.Confirmations()
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	for _, m := range []prometheus.Metric{
		prometheus.MustNewConstMetric(epochDesc, gauge, float64(stats.Epoch)),
		prometheus.MustNewConstMetric(historyLossesDesc, counter, float64(stats.Losses)),
		prometheus.MustNewConstMetric(entriesLostDesc, gauge, float64(stats.EntriesLost)),
		prometheus.MustNewConstMetric(acknowledgedLostDesc, gauge, float64(stats.AcknowledgedLost)),
		prometheus.MustNewConstMetric(moneyStoppedDesc, gauge, stopped),
		prometheus.MustNewConstMetric(confirmationsDesc, counter, float64(confirmed), "confirmed"),
		prometheus.MustNewConstMetric(confirmationsDesc, counter, float64(missed), "missed"),
	} {
		metrics <- m
	}
}
