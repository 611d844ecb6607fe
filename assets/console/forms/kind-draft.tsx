/**
 * The shared part of the forms for DNS providers, notification channels and deploy targets: type, name, and the
 * settings of the type.
 */
import { useState } from 'preact/hooks';
import { TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { useResource } from '../data/resource.ts';
import {
  type ConfigField,
  type ConfigSchema,
  capitalized,
  configFields,
  configValues,
  outerOf,
} from './config-schema.ts';
import { Setting } from './setting.tsx';

type Kind<Part extends string> = {
  readonly type: string;
  readonly title: string;
  readonly command_line_only: boolean;
} & Readonly<Record<Part, ConfigSchema>>;

type ErrorOf = (path: string) => string | undefined;

export type KindDraft = ReturnType<typeof useKindDraft>;

/** `path` lists the types, `part` is the property with the settings schema of a type, `changed` the object to edit. */
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
  const isCommandLineOnly = kind?.command_line_only === true;
  const fields = kind === undefined || isCommandLineOnly ? [] : configFields(kind[part]);
  return {
    ...{ kinds, loadError, type, name, setName, typed, fields, part, isCommandLineOnly },
    isKnown: kind !== undefined,
    choose: (value: string) => {
      setType(value);
      setTyped({});
      if (name === '' || name === type) setName(value);
    },
    setSetting: (field: string, value: string) => setTyped((now) => ({ ...now, [field]: value })),
    /** The settings in the format of the API. */
    values: () => configValues(fields, typed),
  };
}

/** `command` is the CLI command for types that cannot be added here; `labelOf` makes a label of type and title. */
export function KindSelect({
  draft: { kinds, type, choose, isCommandLineOnly },
  errorOf,
  plural,
  command,
  labelOf = ({ title }) => capitalized(title),
}: {
  readonly draft: KindDraft;
  readonly errorOf: ErrorOf;
  readonly plural: string;
  readonly command: string;
  readonly labelOf?: (kind: { readonly type: string; readonly title: string }) => string;
}) {
  const choices = kinds
    .map((kind) => ({ value: kind.type, label: labelOf(kind) }))
    .toSorted((one, other) => one.label.localeCompare(other.label));
  return (
    <>
      <Select
        label="Type"
        value={type}
        error={errorOf('type')}
        onValue={choose}
        choices={[{ value: '', label: 'Select a type' }, ...choices]}
      />
      {isCommandLineOnly && (
        <Notice tone="warning">
          {plural} of this type run programs. For safety, add them on the vault’s host:{' '}
          <code>
            {command} {type}
          </code>
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

/** `shown` can adjust a field before it is rendered. */
export function KindSettings({
  draft: { fields, part, typed, setSetting },
  errorOf,
  shown = (field) => field,
}: {
  readonly draft: KindDraft;
  readonly errorOf: ErrorOf;
  readonly shown?: (field: ConfigField) => ConfigField;
}) {
  const errorAt = (name: string) => errorOf(`${part}.${name}`);
  const settings = (some: readonly ConfigField[]) =>
    some.map((field) => (
      <Setting
        key={field.name}
        field={shown(field)}
        value={typed[field.name] ?? ''}
        error={errorAt(field.name)}
        onValue={(value) => setSetting(field.name, value)}
      />
    ));
  return (
    <>
      {[...Map.groupBy(fields, ({ name }) => outerOf(name))].map(([outer, some]) => {
        const group = some[0]?.group;
        if (group === undefined) return settings(some);
        const error = some.some(({ name }) => errorAt(name)) ? undefined : errorAt(outer);
        return (
          <fieldset key={outer} class="card stack">
            <legend>{group.label}</legend>
            {group.hint && <p class="field-hint">{group.hint}</p>}
            {error && (
              <p class="field-error" role="alert">
                {error}
              </p>
            )}
            {settings(some)}
          </fieldset>
        );
      })}
    </>
  );
}

/** The error if the types could not be loaded. */
export function KindProblem({ draft: { loadError } }: { readonly draft: KindDraft }) {
  return loadError && <Problem error={loadError} />;
}
