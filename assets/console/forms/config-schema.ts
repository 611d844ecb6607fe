/** Form fields for the settings of a DNS provider, channel or deploy target, from the JSON Schema in the API. */

export type ConfigField = {
  /** A setting within another one has both names: `files.fullchain`. */
  readonly name: string;
  readonly label: string;
  readonly isRequired: boolean;
  readonly isSecret: boolean;
  /** Several lines of text, such as a key file. */
  readonly isLong: boolean;
  /** A `list` is typed as text, separated by spaces, commas or line breaks. */
  readonly kind: 'text' | 'number' | 'switch' | 'list';
  readonly choices: readonly string[] | undefined;
  readonly hint: string | undefined;
  /** The setting that this one is within. */
  readonly group?: {
    readonly label: string;
    readonly hint: string | undefined;
    readonly isRequired: boolean;
  };
};

type Property = {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Property[];
  readonly default?: unknown;
  readonly description?: string;
  readonly items?: Property;
  readonly properties?: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
};

export type ConfigSchema = {
  readonly properties?: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
};

/** The fields, required ones first. */
export function configFields({ properties = {}, required = [] }: ConfigSchema): ConfigField[] {
  const fields = Object.entries(properties).flatMap(([name, property]) =>
    property.properties === undefined
      ? [fieldOf(name, property, required.includes(name))]
      : configFields(property).map((field) => ({
          ...field,
          name: `${name}.${field.name}`,
          group: {
            label: labelOf(name),
            hint: hintOf(undefined, property.description),
            isRequired: required.includes(name),
          },
          isSecret: false,
          isLong: false,
        })),
  );
  const rank = ({ name }: ConfigField) => Number(!required.includes(outerOf(name)));
  return fields.sort((one, other) => rank(one) - rank(other));
}

/** The setting of the API that a field is, or is within. */
export function outerOf(name: string): string {
  return name.replace(/\..*/, '');
}

/** The settings to send: the fields that were filled in, converted to their types. */
export function configValues(
  fields: readonly ConfigField[],
  typed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, kind, group } of fields) {
    const text = (typed[name] ?? '').trim();
    const [outer = name, inner] = name.split('.');
    if (group?.isRequired) values[outer] ??= {};
    if (text === '') continue;
    const value = settingOf(kind, text);
    values[outer] =
      inner === undefined ? value : { ...(values[outer] as object | undefined), [inner]: value };
  }
  return values;
}

function settingOf(kind: ConfigField['kind'], text: string): unknown {
  if (kind === 'number') return Number(text);
  if (kind === 'switch') return true;
  return kind === 'list' ? text.split(/[\s,]+/).filter(Boolean) : text;
}

function fieldOf(name: string, property: Property, isRequired: boolean): ConfigField {
  const { type, anyOf, default: fallback, description, items } = property;
  const isText = ['ca', 'template', 'private_key', 'host_key', 'command'].includes(name);
  const isLong = isText || type === 'array' || (anyOf?.some((choice) => choice.type === 'object') ?? false);
  const kind = kindOf(property);
  return {
    name,
    label: labelOf(name),
    isRequired,
    // A setting with a default is a name, such as `secret` of Kubernetes.
    isSecret: /token$|secret|pass|_key$|device_id/.test(name) && !isLong && fallback === undefined,
    isLong,
    kind,
    choices: property.enum?.map(String),
    hint: hintOf(fallback, description ?? (items?.enum && `any of ${items.enum.join(', ')}`)),
  };
}

function hintOf(fallback: unknown, description = ''): string | undefined {
  const hasDefault = fallback !== undefined && typeof fallback !== 'object';
  const parts = [capitalized(description), hasDefault && `Default: ${fallback}`];
  return parts.filter(Boolean).join('. ') || undefined;
}

function labelOf(name: string): string {
  return capitalized(name.replaceAll('_', ' ')).replaceAll(/\b(id|api|url|ttl|ca|arn|vdom)\b/gi, (word) =>
    word.toUpperCase(),
  );
}

/** The text with a capital at its start. */
export function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function kindOf({ type, const: only }: Property): ConfigField['kind'] {
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'array') return 'list';
  return only === true || type === 'boolean' ? 'switch' : 'text';
}
