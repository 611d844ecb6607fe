/** What is going on, for whoever waits: one line that changes on a terminal, a line for each step elsewhere. */

export type Progress = {
  /** Shows what happens now; the same text again shows nothing. */
  readonly show: (text: string) => void;
  /** Leaves the line empty for what comes next. */
  readonly end: () => void;
};

export function progress(stream: NodeJS.WriteStream): Progress {
  let shown = '';
  return {
    show: (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they could make a terminal do things.
      const line = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
      if (line === shown) return;
      shown = line;
      // Instructions may be longer than the terminal is wide; they must stay readable, so they get lines of their own.
      const fits = stream.isTTY && line.length < stream.columns;
      stream.write(fits ? `\r\u001b[K${line}` : `${stream.isTTY ? '\r\u001b[K' : ''}${line}\n`);
    },
    end: () => {
      if (stream.isTTY && shown !== '') stream.write('\r\u001b[K');
    },
  };
}
