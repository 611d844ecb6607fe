/** A button that opens a short list of links and actions. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Role } from '../../../src/base/role.ts';
import { useRefusal } from '../data/session.ts';

export type MenuItem =
  | { readonly label: string; readonly href: string }
  | {
      readonly label: string;
      readonly onSelect: () => void;
      readonly isDanger?: boolean;
      /** The role that the action needs, as of a button. */
      readonly needs?: Role | undefined;
    };

export function Menu({
  label,
  children,
  items,
}: {
  /** The button's name for screen readers. */
  readonly label: string;
  readonly children: ComponentChildren;
  readonly items: readonly MenuItem[];
}) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onPress = ({ target }: Event) => {
      if (!root.current?.contains(target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', onPress);
    document.addEventListener('focusin', onPress);
    return () => {
      document.removeEventListener('pointerdown', onPress);
      document.removeEventListener('focusin', onPress);
    };
  }, [isOpen]);
  const button = () => root.current?.querySelector('button');
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape must work for any focused element inside.
    <div
      class="menu"
      ref={root}
      onKeyDown={({ key }) => {
        if (key !== 'Escape' || !isOpen) return;
        setOpen(false);
        button()?.focus();
      }}
    >
      <button
        type="button"
        class="button button-quiet"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {children}
      </button>
      <ul id={id} class="menu-list" hidden={!isOpen}>
        {items.map((item) => (
          <li key={item.label}>
            {'href' in item ? (
              <a href={item.href} onClick={() => setOpen(false)}>
                {item.label}
              </a>
            ) : (
              <MenuAction
                item={item}
                onSelect={() => {
                  setOpen(false);
                  button()?.focus();
                  item.onSelect();
                }}
              />
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

function MenuAction({
  item: { label, isDanger = false, needs },
  onSelect,
}: {
  readonly item: Exclude<MenuItem, { readonly href: string }>;
  readonly onSelect: () => void;
}) {
  const refusal = useRefusal(needs);
  return (
    <button
      type="button"
      class={isDanger ? 'menu-danger' : ''}
      {...(refusal !== undefined && { 'aria-disabled': true })}
      onClick={refusal === undefined ? onSelect : undefined}
    >
      <span>
        {label}
        {refusal !== undefined && <span class="beneath">{refusal}</span>}
      </span>
    </button>
  );
}
