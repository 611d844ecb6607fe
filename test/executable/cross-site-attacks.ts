/**
 * Attacks of another site on the vault in the browser of a signed-in person. Each is a script for a page of that site,
 * with the vault's URL in `vault`, and returns what the page could read.
 */

export type Attack = {
  readonly title: string;
  readonly script: string;
  /**
   * Where the vault's error arrives: as the new page, at the script, or nowhere, because the browser's preflight
   * request fails.
   */
  readonly refusal: 'page' | 'script' | 'nowhere';
};

const wanted = { name: 'evil', domains: ['evil.example'], issuer: 'local-ca' };
const json = JSON.stringify(wanted);
const credentials = { name: 'mallory', password: 'nine green bottles on a wall' };

/** Submits a form, whose response replaces the page. */
function form(path: string, enctype: string, fields: Readonly<Record<string, string>>): string {
  return `
    const form = Object.assign(document.createElement('form'), { method: 'post', enctype: '${enctype}', action: vault + '${path}' });
    for (const [name, value] of Object.entries(${JSON.stringify(fields)})) {
      form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
    }
    document.body.append(form);
    form.submit()`;
}

/** Sends a request and returns the text of the response, if the page can read it. */
function fetching(path: string, init: object): string {
  return `
    fetch(vault + '${path}', { credentials: 'include', ...${JSON.stringify(init)} })
      .then((response) => response.text())
      .catch(() => 'stopped')`;
}

/** A \`text/plain\` form whose body is JSON: the equals sign of the field is inside a string. */
const plain = { [`${json.slice(0, -1)},"x":"`]: '"}' };
const text = { 'Content-Type': 'text/plain' };
const asJson = { 'Content-Type': 'application/json' };

/** Requests that would change something if the vault accepted them. */
export const attacks: readonly Attack[] = [
  {
    title: 'a form',
    script: form('/api/v1/certificates', 'application/x-www-form-urlencoded', { name: 'evil' }),
    refusal: 'page',
  },
  {
    title: 'a form whose text is JSON',
    script: form('/api/v1/certificates', 'text/plain', plain),
    refusal: 'page',
  },
  {
    title: 'a form with files',
    script: form('/api/v1/imports', 'multipart/form-data', { name: 'evil' }),
    refusal: 'page',
  },
  {
    title: 'a form that signs in as another person',
    script: form('/api/v1/session', 'text/plain', {
      [`${JSON.stringify(credentials).slice(0, -1)},"x":"`]: '"}',
    }),
    refusal: 'page',
  },
  {
    title: 'a fetch without CORS',
    script: fetching('/api/v1/certificates', { method: 'POST', mode: 'no-cors', headers: text, body: json }),
    refusal: 'script',
  },
  {
    title: 'a fetch without CORS that revokes a key',
    script: fetching('/api/v1/api-keys/1/revoke', {
      method: 'POST',
      mode: 'no-cors',
      headers: text,
      body: '{}',
    }),
    refusal: 'script',
  },
  {
    title: 'a fetch with CORS that needs no preflight',
    script: fetching('/api/v1/certificates', { method: 'POST', headers: text, body: json }),
    refusal: 'script',
  },
  {
    title: 'a fetch of JSON with CORS',
    script: fetching('/api/v1/certificates', { method: 'POST', headers: asJson, body: json }),
    refusal: 'nowhere',
  },
  {
    title: 'a deletion',
    script: fetching('/api/v1/certificates/www.example.test?force=true', { method: 'DELETE' }),
    refusal: 'nowhere',
  },
  { title: 'a sign-out', script: fetching('/api/v1/session', { method: 'DELETE' }), refusal: 'nowhere' },
];

/** Adds an element to the page and returns whether it was loaded. */
function element(tag: string, attribute: string, path: string, more = ''): string {
  return `
    new Promise((resolve) => {
      const added = document.createElement('${tag}');
      added.onload = () => resolve('loaded');
      added.onerror = () => resolve('stopped');
      ${more}
      added.${attribute} = vault + '${path}';
      document.body.append(added);
    })`;
}

/** Requests that could leak data. Each returns \`stopped\`, or the empty text of an opaque response. */
export const probes: readonly (readonly [title: string, script: string])[] = [
  ['a fetch with CORS', fetching('/api/v1/certificates', {})],
  ['a fetch without CORS', fetching('/api/v1/certificates', { mode: 'no-cors' })],
  ['an image', element('img', 'src', '/api/v1/certificates')],
  ['a script', element('script', 'src', '/api/v1/certificates')],
  ['a script of the export', element('script', 'src', '/api/v1/audit-events/export?format=jsonl')],
  ['a style', element('link', 'href', '/api/v1/certificates', "added.rel = 'stylesheet';")],
  ['an image of the console itself', element('img', 'src', '/')],
];
