/** What is common to adding a DNS provider and a notification channel: a type, which says what settings there are, and a name. */
import { useState } from 'preact/hooks';
import { TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { type ConfigField, type ConfigSchema, configFields, configValues } from '../config-schema.ts';
import { useResource } from '../resource.ts';
import { Setting } from './setting.tsx';

type Kind<Part extends string> = {
  readonly type: string;
  readonly title: string;
  readonly command_line_only: boolean;
} & Readonly<Record<Part, ConfigSchema>>;

type ErrorOf = (path: string) => string | undefined;

export type KindDraft = ReturnType<typeof useKindDraft>;

/** Types come from `path`, and the settings of each are its `part`; `changed` is what exists already. */
export function useKindDraft<Part extends string>(
  path: string,
  part: Part,
  changed?: { readonly type: string; readonly name: string },
) {
  const { data: kinds = [], error: loadError } = useResource<readonly Kind<Part>[]>(path);
  const [type, setType] = useState(changed?.type ?? '');
  const [name, setName] = useState(changed?.name ?? '');
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const kind = kinds.find((known) => known.type === type);
  const isElsewhere = kind?.command_line_only === true;
  const fields = kind === undefined || isElsewhere ? [] : configFields(kind[part]);
  return {
    ...{ kinds, loadError, type, name, setName, typed, fields, part, isElsewhere },
    isKnown: kind !== undefined,
    choose: (value: string) => {
      setType(value);
      setTyped({});
      if (name === '' || name === type) setName(value);
    },
    setSetting: (field: string, value: string) => setTyped((now) => ({ ...now, [field]: value })),
    /** The settings as the API takes them. */
    values: () => configValues(fields, typed),
  };
}

/** `command` is the one that adds it on the vault's own machine. */
export function KindSelect({
  draft: { kinds, type, choose, isElsewhere },
  errorOf,
  plural,
  command,
}: {
  readonly draft: KindDraft;
  readonly errorOf: ErrorOf;
  readonly plural: string;
  readonly command: string;
}) {
  const choices = kinds
    .map(({ type: value, title }) => ({ value, label: title.charAt(0).toUpperCase() + title.slice(1) }))
    .toSorted((one, other) => one.label.localeCompare(other.label));
  return (
    <>
      <Select
        label="Type"
        value={type}
        error={errorOf('type')}
        onValue={choose}
        choices={[{ value: '', label: 'Choose one' }, ...choices]}
      />
      {isElsewhere && (
        <Notice tone="warning">
          {plural} of this type start programs, and are added on the vault’s own machine only: {command}{' '}
          {type}
        </Notice>
      )}
    </>
  );
}

export function KindName({
  draft: { name, setName },
  errorOf,
}: {
  readonly draft: KindDraft;
  readonly errorOf: ErrorOf;
}) {
  return <TextField label="Name" value={name} error={errorOf('name')} onValue={setName} />;
}

/** `shown` may say something else about a field than its schema does. */
export function KindSettings({
  draft: { fields, part, typed, setSetting },
  errorOf,
  shown = (field) => field,
}: {
  readonly draft: KindDraft;
  readonly errorOf: ErrorOf;
  readonly shown?: (field: ConfigField) => ConfigField;
}) {
  return (
    <>
      {fields.map((field) => (
        <Setting
          key={field.name}
          field={shown(field)}
          value={typed[field.name] ?? ''}
          error={errorOf(`${part}.${field.name}`)}
          onValue={(value) => setSetting(field.name, value)}
        />
      ))}
    </>
  );
}

/** Why the types could not be had. */
export function KindProblem({ draft: { loadError } }: { readonly draft: KindDraft }) {
  return loadError && <Problem error={loadError} />;
}
