package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Build is a build that some nodes run.
type Build struct {
	Version string
	Commit  string // "" of nodes that do not report it
	Oldest  int    // layout of the store that it reads
	Newest  int
	Nodes   int // that run it
}

// layoutBeforeRanges is the only layout that nodes read which do not report any: those of v0.9.0.
const layoutBeforeRanges = 3

func (r *Report) layouts() (oldest, newest int) {
	if r.Newest == 0 {
		return layoutBeforeRanges, layoutBeforeRanges
	}
	return r.Oldest, r.Newest
}

// NewestReadable returns the newest layout of the store that a node reads.
func (r *Report) NewestReadable() int {
	_, newest := r.layouts()
	return newest
}

// countBuilds returns the builds that nodes run, the one that most run first.
func countBuilds(list []Report) (builds []Build) {
	for _, r := range list {
		oldest, newest := r.layouts()
		one := Build{Version: r.Version, Commit: r.Commit, Oldest: oldest, Newest: newest}
		i := slices.IndexFunc(builds, func(b Build) bool { one.Nodes = b.Nodes; return b == one })
		if i < 0 {
			one.Nodes, i = 0, len(builds)
			builds = append(builds, one)
		}
		builds[i].Nodes++
	}
	slices.SortFunc(builds, func(a, b Build) int {
		return cmp.Or(b.Nodes-a.Nodes, strings.Compare(a.Version, b.Version), strings.Compare(a.Commit, b.Commit))
	})
	return builds
}

// DescribeBuilds returns which builds run, as this node last read it, for the check versions; and
// whether each of them reads the layout of the store.
func (s *Service) DescribeBuilds() (detail string, ok bool) {
	if problem := s.store.db.LayoutProblem(); problem != "" {
		return problem + "; this node writes nothing", false
	}
	layout := s.store.db.Layout()
	known := s.builds.Load()
	if known == nil || len(*known) == 0 {
		return fmt.Sprintf("%s; the store has layout %d", s.options.Version, layout), true
	}
	return describeBuilds(*known, layout)
}

func describeBuilds(builds []Build, layout int) (detail string, ok bool) {
	versions := map[string]int{}
	for _, b := range builds {
		versions[b.Version]++
	}
	var parts, behind []string
	for _, b := range builds {
		name := cmp.Or(b.Version, "unknown")
		if versions[b.Version] > 1 {
			name += " (commit " + cmp.Or(b.Commit[:min(len(b.Commit), 12)], "unknown") + ")"
		}
		parts = append(parts, name+" on "+countNodes(b.Nodes))
		if layout < b.Oldest || layout > b.Newest {
			behind = append(behind, name)
		}
	}
	switch {
	case len(behind) > 0:
		return fmt.Sprintf("%s; the store has layout %d, which %s cannot read", strings.Join(parts, ", "), layout,
			strings.Join(behind, " and ")), false
	case len(builds) > 1:
		return fmt.Sprintf("mixed: %s; the store has layout %d, which all read", strings.Join(parts, ", "), layout), true
	}
	return fmt.Sprintf("%s; the store has layout %d", parts[0], layout), true
}

func countNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
