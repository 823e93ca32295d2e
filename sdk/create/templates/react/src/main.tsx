// The page: what the match shows, as components.
import { StrictMode, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { Match } from "./match";
import "./style.css";

const match = new Match(); // one for the page: a component may be rendered twice

const useMatch = () => useSyncExternalStore(match.subscribe, () => match.view);

/** The stones. Those that may be taken are the last ones: a click takes a stone and all behind it. */
function Stones() {
  const { stones, mostToTake } = useMatch();
  return (
    <div id="stones">
      {Array.from({ length: stones }, (_, i) => stones - i).map((taken) => (
        <button key={taken} title={`Take ${taken}`} disabled={taken > mostToTake} onClick={() => match.take(taken)}>
          {taken}
        </button>
      ))}
    </div>
  );
}

function Page() {
  const { balance, status, canPlay, canLeave } = useMatch();
  return (
    <>
      <h1>{document.title}</h1>
      <p id="balance">{balance}</p>
      <p id="status" role="status">{status}</p>
      <Stones />
      <p>
        <button id="play" disabled={!canPlay} onClick={match.play}>Play for 2.50</button>{" "}
        <button id="leave" disabled={!canLeave} onClick={match.leave}>Give up</button>
      </p>
    </>
  );
}

createRoot(document.getElementById("root")!).render(<StrictMode><Page /></StrictMode>);
