package main

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifySystemd reports a state of the node to systemd, if that started it as a service of the type
// notify: deploy/parlor.service. Elsewhere it does nothing.
func notifySystemd(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", "state", state, "cause", err)
	}
}

// notifySystemdOfReload reports that the node reads its settings again, and afterwards that it is
// ready, unless it was not ready before: then it is not afterwards.
func (n *node) notifySystemdOfReload(reload func()) {
	if !n.monitor.HasStarted() {
		reload()
		return
	}
	notifySystemd(n.log, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	reload()
	notifySystemd(n.log, daemon.SdNotifyReady)
}
