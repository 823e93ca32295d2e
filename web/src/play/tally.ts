/** Counts the numbered events of a room, and finds those that are missing or came twice. */
export class Tally {
  events = 0;
  lost = 0;
  doubled = 0;

  /** @param last the number of the last event before the first that is counted */
  constructor(private last: number) {}

  note(seq: number) {
    if (seq <= this.last) {
      this.doubled++;
      return;
    }
    this.lost += seq - this.last - 1;
    this.last = seq;
    this.events++;
  }
}
