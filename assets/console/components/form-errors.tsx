/**
 * One rule for the errors of a form: each stands at its field, the first of these gets the focus, and what concerns no
 * field stands below the form.
 */
import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { type ApiError, pathsAt } from '../data/api.ts';
import { Notice, Problem } from './notice.tsx';

export type FormErrors = {
  /** For the form element. */
  readonly form: RefObject<HTMLFormElement | null>;
  /** The error of a field by its path. To be called while the form renders, before `rest`. */
  readonly errorOf: (field: string) => string | undefined;
  /** The errors that no field shows. */
  readonly rest: ComponentChildren;
};

export function useFormErrors(error: ApiError | undefined): FormErrors {
  const form = useRef<HTMLFormElement>(null);
  // A long form hides its errors.
  useLayoutEffect(() => {
    if (error === undefined) return;
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid]');
    (field ?? form.current?.querySelector('.field-error, .notice'))?.scrollIntoView({ block: 'center' });
    field?.focus({ preventScroll: true });
  }, [error]);
  const shown = new Set<string>();
  const errorOf = (field: string) => {
    if (error === undefined) return undefined;
    for (const path of pathsAt(error.fields, field)) shown.add(path);
    return error.field(field);
  };
  return { form, errorOf, rest: error && <Rest error={error} shown={shown} /> };
}

/** Renders after the fields, so `shown` has their paths. */
function Rest({ error, shown }: { readonly error: ApiError; readonly shown: ReadonlySet<string> }) {
  const left = Object.entries(error.fields).filter(([path]) => !shown.has(path));
  if (shown.size === 0) return <Problem error={error} />;
  return (
    <Notice tone="bad" title={shown.size === 1 ? 'Correct the marked field.' : 'Correct the marked fields.'}>
      {left.length > 0 && (
        <ul>
          {left.map(([path, message]) => (
            <li key={path}>{message}</li>
          ))}
        </ul>
      )}
    </Notice>
  );
}
