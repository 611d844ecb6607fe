/** The settings of a DNS provider's type as a form sees them, from the JSON Schema that the API shows. */

export type ConfigField = {
  readonly name: string;
  readonly label: string;
  readonly isRequired: boolean;
  readonly isSecret: boolean;
  /** Several lines of text, such as a key file. */
  readonly isLong: boolean;
  readonly kind: 'text' | 'number' | 'switch';
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
};

export type ConfigSchema = {
  readonly properties?: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
};

/** The fields, those that are needed first. */
export function configFields({ properties = {}, required = [] }: ConfigSchema): ConfigField[] {
  const fields = Object.entries(properties).map(([name, property]) =>
    fieldOf(name, property, required.includes(name)),
  );
  return [
    ...fields.filter(({ isRequired }) => isRequired),
    ...fields.filter(({ isRequired }) => !isRequired),
  ];
}

/** The settings to send: what was filled in, as its type wants it. */
export function configValues(
  fields: readonly ConfigField[],
  typed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, kind } of fields) {
    const text = (typed[name] ?? '').trim();
    if (text !== '') values[name] = kind === 'number' ? Number(text) : kind === 'switch' ? true : text;
  }
  return values;
}

function fieldOf(name: string, property: Property, isRequired: boolean): ConfigField {
  const { type, anyOf, default: fallback, description } = property;
  const words = name.replaceAll('_', ' ');
  const isLong = anyOf?.some((choice) => choice.type === 'object') ?? false;
  const kind =
    type === 'integer' || type === 'number' ? 'number' : property.const === true ? 'switch' : 'text';
  return {
    name,
    label: `${words.charAt(0).toUpperCase()}${words.slice(1)}`.replaceAll(/\b(id|api|url|ttl)\b/gi, (word) =>
      word.toUpperCase(),
    ),
    isRequired,
    isSecret: /token$|secret|password|_key$/.test(name) && !isLong,
    isLong,
    kind,
    choices: property.enum?.map(String),
    hint:
      description ??
      (fallback === undefined || typeof fallback === 'object' ? undefined : `Usually ${fallback}`),
  };
}
