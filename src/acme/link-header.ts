/** Parses Link headers (RFC 8288), as far as RFC 8555 uses them. */

const link = /<([^<>]*)>((?:\s*;\s*[^\s;,="]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)/g;
const parameter = /;\s*([^\s;,="]+)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/g;

/** The absolute URLs of all links with rel="alternate", in order and each once; relative ones are resolved with `base`. */
export function alternates(header: string | undefined, base: string): string[] {
  const found = [...(header ?? '').matchAll(link)].flatMap(([, target = '', parameters = '']) => {
    const rel = [...parameters.matchAll(parameter)].find(([, name]) => name?.toLowerCase() === 'rel');
    const relations = (rel?.[2] ?? rel?.[3] ?? '').toLowerCase().split(/\s+/);
    return relations.includes('alternate') && URL.canParse(target, base) ? [new URL(target, base).href] : [];
  });
  return [...new Set(found)];
}
