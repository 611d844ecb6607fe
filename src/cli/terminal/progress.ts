/** Shows progress on stderr: one updated line on a terminal, one line per step elsewhere. */
import { printable } from '../../base/printable-text.ts';

export type Progress = {
  /** Shows the current step; repeated text is skipped. */
  readonly show: (text: string) => void;
  /** Clears the line. */
  readonly end: () => void;
};

export function progress(stream: NodeJS.WriteStream): Progress {
  let shown = '';
  return {
    show: (text) => {
      const line = printable(text);
      if (line === shown) return;
      shown = line;
      // Text wider than the terminal, such as instructions, is printed on separate lines so that it stays readable.
      const fits = stream.isTTY && line.length < stream.columns;
      stream.write(fits ? `\r\u001b[K${line}` : `${stream.isTTY ? '\r\u001b[K' : ''}${line}\n`);
    },
    end: () => {
      if (stream.isTTY && shown !== '') stream.write('\r\u001b[K');
    },
  };
}
