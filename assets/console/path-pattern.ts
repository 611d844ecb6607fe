/** Matches path patterns of pages, such as `/certificates/:name`. */

/** The decoded parameters, or undefined if the path does not match. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const parts = pattern.split('/');
  const segments = path.split('/');
  if (parts.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const text = segments[index] ?? '';
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
    // A URIError: the path is not valid, so no page matches it.
    return undefined;
  }
}
