/**
 * All certificates of the vault, as soon as there are some: what needs a person comes first, then the rest page by page.
 */
import type { Certificate } from './shapes.ts';

export type Certificates = {
  readonly items: readonly Certificate[];
  /** Whether these are all. */
  readonly isWhole: boolean;
};

type Page = { readonly items: readonly Certificate[]; readonly next: string | undefined };

/** So many are asked for before all others, the troubled ones first. */
const firstFew = 200;

/** `read` gives a page of the API; `show` gets what is there so far, until the whole is returned, by name. */
export async function growingList(
  path: string,
  show: (part: Certificates) => void,
  read: (path: string) => Promise<Page>,
): Promise<Certificates> {
  const few = await read(`${path}?sort=status&limit=${firstFew}`);
  if (few.next === undefined) return { items: few.items.toSorted(byName), isWhole: true };
  show({ items: few.items, isWhole: false });
  // By name from here on: in the order of health, one whose health changes meanwhile could be missed.
  const found = new Map<string, Certificate>();
  let next: string | undefined = `${path}?limit=1000`;
  while (next !== undefined) {
    const page: Page = await read(next);
    for (const certificate of page.items) found.set(certificate.name, certificate);
    next = page.next;
    if (next === undefined) break;
    const others = few.items.filter(({ name }) => !found.has(name));
    show({ items: [...others, ...found.values()], isWhole: false });
  }
  return { items: [...found.values()], isWhole: true };
}

function byName(one: Certificate, other: Certificate): number {
  return one.name < other.name ? -1 : 1;
}
