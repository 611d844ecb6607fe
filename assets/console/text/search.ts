/** The search above a list. */

/** Whether each word of the search is in one of the texts. */
export function searchFor(search: string): (texts: readonly string[]) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (texts) => {
    const lower = texts.map((text) => text.toLowerCase());
    return words.every((word) => lower.some((text) => text.includes(word)));
  };
}
