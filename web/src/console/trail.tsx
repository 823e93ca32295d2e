import { useState } from "preact/hooks";
import { withQuery } from "./api";
import { Ref } from "./names";
import type { Act } from "./types";
import { Badge, More, ProblemNote, Refresh, Table, Time, usePages } from "./ui";

function Change({ before, after }: { before: unknown; after: unknown }) {
  const show = (value: unknown) => (value === null || value === undefined ? "–" : JSON.stringify(value));
  return (
    <span class="change">
      <span class="muted">before</span> <code class="data">{show(before)}</code>{" "}
      <span class="muted">after</span> <code class="data">{show(after)}</code>
    </span>
  );
}

export function TrailScreen() {
  const [actor, setActor] = useState("");
  const [target, setTarget] = useState("");
  const [asked, setAsked] = useState({ actor: "", target: "" });
  const trail = usePages<Act>(withQuery("/api/v1/admin/trail", { ...asked, limit: 25 }));
  return (
    <>
      <div class="head"><h1>Trail</h1><div class="actions"><Refresh reload={trail.reload} /></div></div>
      <p class="muted">What operators and game servers have done. Nobody can change it here.</p>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); setAsked({ actor: actor.trim(), target: target.trim() }); }}>
        <p class="field"><label for="actor">Who</label>
          <input id="actor" placeholder="operator:1" value={actor} autoComplete="off" onInput={(event) => setActor(event.currentTarget.value)} /></p>
        <p class="field"><label for="target">About</label>
          <input id="target" placeholder="user:7" value={target} autoComplete="off" onInput={(event) => setTarget(event.currentTarget.value)} /></p>
        <button type="submit" class="primary">Filter</button>
      </form>
      <ProblemNote problem={trail.problem} retry={trail.reload} />
      <Table label="Acts of staff, newest first" items={trail.value} id={(a) => a.id} empty="No acts match." columns={[
          { head: "At", cell: (a) => <Time at={a.at} /> },
          { head: "Who", cell: (a) => <code>{a.actor}</code> },
          { head: "Act", cell: (a) => <>{a.action}{a.outcome === "unknown" ? <> <Badge text="outcome unknown" tone="warn" /></> : null}</> },
          { head: "About", cell: (a) => <Ref text={a.target} /> },
          { head: "Change", cell: (a) => <Change before={a.before} after={a.after} /> },
          { head: "Request", cell: (a) => <code class="data">{a.requestId}</code> },
        ]} />
      <More more={trail.more} />
    </>
  );
}
