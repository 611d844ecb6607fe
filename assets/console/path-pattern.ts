/** Paths of pages, such as `/certificates/:name`. */

/** The decoded parameters, where the path is one of the pattern's. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const parts = pattern.split('/');
  const given = path.split('/');
  if (parts.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const text = given[index] ?? '';
    if (part.startsWith(':')) {
      const value = decoded(text);
      if (value === undefined || value === '') return undefined;
      params[part.slice(1)] = value;
    } else if (part !== text) return undefined;
  }
  return params;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // A URIError: no page has such a path.
    return undefined;
  }
}
