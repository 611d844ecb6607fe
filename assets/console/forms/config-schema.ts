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
};

type Property = {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Property[];
  readonly default?: unknown;
  readonly description?: string;
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
          label: `${labelOf(name)}: ${field.name.replaceAll('_', ' ')}`,
          isSecret: false,
          isLong: false,
        })),
  );
  return [
    ...fields.filter(({ isRequired }) => isRequired),
    ...fields.filter(({ isRequired }) => !isRequired),
  ];
}

/** The settings to send: the fields that were filled in, converted to their types. */
export function configValues(
  fields: readonly ConfigField[],
  typed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, kind } of fields) {
    const text = (typed[name] ?? '').trim();
    if (text === '') continue;
    const [outer = name, inner] = name.split('.');
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
  const { type, anyOf, default: fallback, description } = property;
  const isText = ['ca', 'template', 'private_key', 'host_key', 'command'].includes(name);
  const isLong = isText || type === 'array' || (anyOf?.some((choice) => choice.type === 'object') ?? false);
  const kind = kindOf(property);
  return {
    name,
    label: labelOf(name),
    isRequired,
    isSecret: /token$|secret|password|_key$/.test(name) && !isLong,
    isLong,
    kind,
    choices: property.enum?.map(String),
    hint:
      description ??
      (fallback === undefined || typeof fallback === 'object' ? undefined : `Default: ${fallback}`),
  };
}

function labelOf(name: string): string {
  const title = name.replaceAll('_', ' ');
  return `${title.charAt(0).toUpperCase()}${title.slice(1)}`.replaceAll(/\b(id|api|url|ttl|ca)\b/gi, (word) =>
    word.toUpperCase(),
  );
}

function kindOf({ type, const: only }: Property): ConfigField['kind'] {
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'array') return 'list';
  return only === true || type === 'boolean' ? 'switch' : 'text';
}
