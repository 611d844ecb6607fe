/**
 * Shows the `data-tip` of the elements inside as a tooltip, on hover and on keyboard focus, until Escape is pressed or
 * the pointer or focus leaves. The pointer can move onto it. Screen readers need the same text in the element itself.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

type Tip = { readonly of: Element; readonly text: string };

export function Tooltips({ children }: { readonly children: ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null);
  const bubble = useRef<HTMLDivElement>(null);
  const pointer = useRef('');
  const [tip, setTip] = useState<Tip>();
  const show = ({ target }: Event) => {
    if (bubble.current?.contains(target as Node)) return;
    const of = (target as Element).closest('[data-tip]');
    const text = of?.getAttribute('data-tip');
    setTip(of && text ? { of, text } : undefined);
  };
  const hide = () => setTip(undefined);
  /** Not if something else appears under it, such as the row under a tooltip that Escape closes. */
  const hasMoved = ({ clientX, clientY }: PointerEvent) => {
    const before = pointer.current;
    pointer.current = `${clientX} ${clientY}`;
    return before !== pointer.current;
  };
  useEffect(() => {
    if (tip === undefined) return;
    const onKeyDown = ({ key }: KeyboardEvent) => {
      if (key === 'Escape') setTip(undefined);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [tip]);
  useLayoutEffect(() => {
    if (tip && frame.current && bubble.current) place(bubble.current, tip.of, frame.current);
  }, [tip]);
  return (
    <div
      class="tooltips"
      ref={frame}
      onPointerMove={hasMoved}
      onPointerOver={(event) => {
        if (hasMoved(event)) show(event);
      }}
      onPointerLeave={hide}
      onFocusIn={(event) => {
        if ((event.target as Element).matches(':focus-visible')) show(event);
      }}
      onFocusOut={hide}
    >
      {children}
      {tip && (
        <div role="tooltip" class="tooltip" ref={bubble}>
          {tip.text}
        </div>
      )}
    </div>
  );
}

/** Above the element, or below it at the top of the window; without a gap, and never beyond the frame's sides. */
function place(bubble: HTMLElement, of: Element, frame: HTMLElement): void {
  const [outer, inner] = [frame.getBoundingClientRect(), of.getBoundingClientRect()];
  const { offsetWidth: width, offsetHeight: height } = bubble;
  const middle = inner.left + inner.width / 2 - outer.left;
  const left = Math.max(0, Math.min(middle - width / 2, outer.width - width));
  const top = inner.top >= height ? inner.top - height : inner.bottom;
  bubble.style.left = `${left}px`;
  bubble.style.top = `${top - outer.top}px`;
}
