/** Text with a button that copies it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './button.tsx';

/** A button that copies `text` and confirms it. `name` says what it copies where the page has several. */
export function CopyButton({
  text,
  label = 'Copy',
  name,
}: {
  readonly text: string;
  readonly label?: string;
  readonly name?: string;
}) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    setState((await copied(text)) ? 'copied' : 'refused');
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState('idle'), 2000);
  };
  return (
    <>
      <Button onClick={() => void copy()} {...(name !== undefined && { 'aria-label': name })}>
        {{ idle: label, copied: 'Copied', refused: 'Copy failed' }[state]}
      </Button>
      <span class="sr-only" role="status">
        {
          {
            idle: '',
            copied: 'Copied',
            refused: 'The browser blocked copying. Select the text and copy it.',
          }[state]
        }
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

/** Copies the text. Browsers have no clipboard API over plain HTTP, but still support the old copy command. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard API, or no permission.
    const area = document.createElement('textarea');
    area.value = text;
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand('copy');
    area.remove();
    return isDone;
  }
}
