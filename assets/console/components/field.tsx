/** Labeled inputs, each with a hint and an error. */
import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';

export type FieldProps = {
  readonly label: string;
  /** What to enter and what it does. */
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
};

type Attributes = { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean };

/** A label, a control, a hint and an error. `children` receives the attributes that connect them. */
export function Field({
  label,
  hint,
  error,
  children,
}: FieldProps & { readonly children: (attributes: Attributes) => ComponentChildren }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described && { 'aria-describedby': described }),
        ...(error !== undefined && { 'aria-invalid': true }),
      })}
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

type TextProps = FieldProps & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly type?: 'text' | 'password' | 'search' | 'email' | 'url' | 'datetime-local' | 'number';
  /** Values that the browser offers while the person types. */
  readonly offers?: readonly string[];
} & Pick<
    JSX.IntrinsicElements['input'],
    | 'name'
    | 'autocomplete'
    | 'placeholder'
    | 'required'
    | 'minLength'
    | 'disabled'
    | 'spellcheck'
    | 'onBlur'
    | 'onFocus'
  >;

/**
 * A text input. Autocomplete and spell checking are off by default, because browsers have nothing useful to suggest.
 */
export function TextField({
  label,
  hint,
  error,
  onValue,
  type = 'text',
  autocomplete = 'off',
  spellcheck = false,
  offers = [],
  ...rest
}: TextProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <>
          <input
            {...rest}
            {...attributes}
            {...{ autocomplete, spellcheck }}
            {...({
              type,
              ...(offers.length > 0 && { list: `${attributes.id}-offers` }),
            } as JSX.IntrinsicElements['input'])}
            class="input"
            onInput={({ currentTarget }) => onValue(currentTarget.value)}
          />
          {offers.length > 0 && (
            <datalist id={`${attributes.id}-offers`}>
              {offers.map((offer) => (
                <option key={offer} value={offer} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

type TextAreaProps = FieldProps & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly rows?: number;
  /** For PEM and commands. */
  readonly isCode?: boolean;
  readonly placeholder?: string;
};

export function TextArea({
  label,
  hint,
  error,
  value,
  onValue,
  rows = 4,
  isCode,
  placeholder,
}: TextAreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <textarea
          {...attributes}
          class={isCode ? 'input code' : 'input'}
          rows={rows}
          value={value}
          placeholder={placeholder}
          spellcheck={false}
          onInput={({ currentTarget }) => onValue(currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A checkbox with a label. */
export function Checkbox({
  label,
  hint,
  error,
  isChecked,
  onChecked,
  isDisabled = false,
}: FieldProps & {
  readonly isChecked: boolean;
  readonly onChecked: (isChecked: boolean) => void;
  readonly isDisabled?: boolean;
}) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class="field checkbox">
      <label>
        <input
          type="checkbox"
          checked={isChecked}
          disabled={isDisabled}
          {...(described && { 'aria-describedby': described })}
          onChange={({ currentTarget }) => onChecked(currentTarget.checked)}
        />
        <span>{label}</span>
      </label>
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}
