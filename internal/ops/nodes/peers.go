package nodes

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	askedAtOnce  = 3                      // nodes; one that has the store is enough
	askTimeout   = 800 * time.Millisecond // of a question
	maxReply     = 4 << 10                // bytes of a reply that are read
	maxPeers     = 64                     // addresses that are remembered, any of those that were read
	balancesText = `"status":"balance"`   // in the reply of a node that has its store
)

// peers are the addresses of other nodes, as the store last had them.
type peers struct {
	client *http.Client
	path   string // that returns 200 and balancesText
}

func newPeers() peers {
	return peers{path: "/balancez", client: &http.Client{
		Timeout:       askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Without a proxy of the environment: the others are in the same network.
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// Advertise sets the address, host:port, at which other nodes reach this one; "" for none. Call it
// before Run.
func (s *Service) Advertise(address string) { s.report.Address = address }

// remember keeps the addresses of other nodes that a list has.
func (s *Service) remember(list []Report) {
	var addresses []string
	for _, r := range list {
		// Two nodes with one address are behind something else than their own interface.
		if r.ID != s.options.ID && r.Address != "" && r.Address != s.report.Address {
			addresses = append(addresses, r.Address)
		}
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	addresses = addresses[:min(len(addresses), maxPeers)]
	s.others.Store(&addresses)
}

// OtherServes asks some other nodes whether they have their store, and reports whether one has. It
// does not ask the store: the addresses are those that it last had, at most a minute old by then.
// False means that no other node has it, that none was reached, or that none is known.
func (s *Service) OtherServes(ctx context.Context) bool {
	known := s.others.Load()
	if known == nil || len(*known) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	replies := make(chan bool, askedAtOnce)
	asked := min(askedAtOnce, len(*known))
	first := rand.IntN(len(*known))
	for i := range asked {
		address := (*known)[(first+i)%len(*known)]
		go func() { replies <- s.peers.balances(ctx, address) }()
	}
	any := false
	for range asked { // all of them: each goroutine ends before this does
		any = <-replies || any
	}
	return any
}

// balances asks a node whether it accepts connections: whether it has its store and does not drain.
func (p peers) balances(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+p.path, http.NoBody)
	if err != nil {
		return false
	}
	response, err := p.client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), balancesText)
}
