/** Tabs, with the ARIA keyboard pattern. The selected tab is kept in the URL (`?tab=`). */
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { changeQuery, usePlace } from '../router.ts';

export type Tab = { readonly id: string; readonly label: string; readonly content: () => ComponentChildren };

export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  const { query } = usePlace();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const wanted = tabs.findIndex((tab) => tab.id === query.get('tab'));
  const selected = Math.max(wanted, 0);
  const select = (index: number) => {
    const tab = tabs[(index + tabs.length) % tabs.length];
    if (tab === undefined) return;
    changeQuery({ tab: tab === tabs[0] ? '' : tab.id });
    list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${tab.id}`)}`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const target = { ArrowRight: selected + 1, ArrowLeft: selected - 1, Home: 0, End: tabs.length - 1 }[
      event.key
    ];
    if (target === undefined) return;
    event.preventDefault();
    select(target);
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map((tab, index) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${id}-${tab.id}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => select(index)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tabs[selected]?.id}`}>
        {tabs[selected]?.content()}
      </div>
    </>
  );
}
