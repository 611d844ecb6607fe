/** The current version of a certificate beside the one that an import would put in its place. */
import { uncoveredNames } from '../../../src/base/covered-names.ts';
import { Notice } from '../components/notice.tsx';
import { Time } from '../components/time.tsx';
import type { CertificateFacts } from '../data/administration-shapes.ts';
import type { Certificate } from '../data/shapes.ts';

/** The domains of the current version that the new one would not cover. */
export function lostDomains({ domains, current_version }: Certificate, next: CertificateFacts): string[] {
  return current_version === null ? [] : uncoveredNames(domains, next.domains);
}

/** Why nothing can be imported under the name of this certificate; undefined if a version can be added. */
export function importObstacle({ name, issuer, owner }: Certificate): string | undefined {
  if (owner !== null) return `${name} belongs to the ACME client ${owner.name}; choose another name`;
  if (issuer !== null) return `${name} is renewed by ${issuer}; choose another name`;
  return undefined;
}

export function ImportComparison({
  existing,
  next,
}: {
  readonly existing: Certificate;
  readonly next: CertificateFacts;
}) {
  const { current_version: current, domains } = existing;
  if (current === null) return null;
  const lost = new Set(lostDomains(existing, next));
  const added = new Set(uncoveredNames(next.domains, domains));
  const rows = [
    {
      title: 'Domains',
      old: <Names names={domains} marked={lost} what="lost" />,
      new: <Names names={next.domains} marked={added} what="added" />,
    },
    {
      title: 'Expires',
      old: <Time at={current.not_after} show="both" />,
      new: <Time at={next.not_after} show="both" />,
    },
    { title: 'Signed by', old: current.issuer, new: next.issuer },
    { title: 'Key type', old: current.key_type, new: next.key_type },
  ];
  const isEarlier = Date.parse(next.not_after) < Date.parse(current.not_after);
  return (
    <section class="stack" aria-label="Comparison">
      {isEarlier && <Notice tone="warning">The new version expires earlier than the current one.</Notice>}
      <table class="comparison">
        <thead>
          <tr>
            <td />
            <th scope="col">Version {current.version}, current</th>
            <th scope="col">New version</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.title}>
              <th scope="row">{row.title}</th>
              <td>{row.old}</td>
              <td>{row.new}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** How many names a cell lists, without those that are marked. */
const namesShown = 10;

function Names({
  names,
  marked,
  what,
}: {
  readonly names: readonly string[];
  readonly marked: ReadonlySet<string>;
  readonly what: string;
}) {
  const same = names.filter((name) => !marked.has(name));
  return (
    <>
      {[...marked].slice(0, namesShown).map((name) => (
        <div key={name}>
          {name} <strong class={`change-${what}`}>{what}</strong>
        </div>
      ))}
      {marked.size > namesShown && (
        <div>
          and {marked.size - namesShown} more <strong class={`change-${what}`}>{what}</strong>
        </div>
      )}
      {same.slice(0, namesShown).map((name) => (
        <div key={name}>{name}</div>
      ))}
      {same.length > namesShown && <div class="quiet">and {same.length - namesShown} more</div>}
    </>
  );
}
