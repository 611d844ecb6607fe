/** Text to take away: a value or a command with a button that copies it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './button.tsx';

/** A button that copies `text` and says so. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    setState((await written(text)) ? 'copied' : 'refused');
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState('idle'), 2000);
  };
  return (
    <>
      <Button onClick={() => void copy()}>
        {{ idle: label, copied: 'Copied', refused: 'Not copied' }[state]}
      </Button>
      <span class="sr-only" role="status">
        {{ idle: '', copied: 'Copied', refused: 'The browser refused; select the text and copy it.' }[state]}
      </span>
    </>
  );
}

/** A block of code with its copy button. */
export function CopyBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <figure class="copy-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <section tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
      <CopyButton text={text} />
    </figure>
  );
}

/** Over plain HTTP to another host browsers offer no clipboard, but they still take the old command. */
async function written(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard, or no permission: the old way may work.
    const area = document.createElement('textarea');
    area.value = text;
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand('copy');
    area.remove();
    return isDone;
  }
}
