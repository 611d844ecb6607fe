/** The table `nodes`: the servers of a shared database. */
import type { Reader, Writer } from '../../database.ts';
import type { NodesTable } from '../../schema/schema-nodes.ts';

export type NodeRow = NodesTable;

/** All recorded nodes, in order of their hosts. */
export async function listNodes(reader: Reader): Promise<NodeRow[]> {
  return reader.selectFrom('nodes').selectAll().orderBy('host').orderBy('id').execute();
}

/** Records a node, in place of what was recorded of it before; `started_at` stays. */
export async function putNode(writer: Writer, node: NodeRow): Promise<void> {
  const { id, started_at, ...changes } = node;
  await writer
    .insertInto('nodes')
    .values({ id, started_at, ...changes })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(changes))
    .execute();
}

/** Deletes a node, if it is recorded. */
export async function deleteNode(writer: Writer, id: string): Promise<void> {
  await writer.deleteFrom('nodes').where('id', '=', id).execute();
}

/** Deletes all nodes, which do not serve this copy of the database. */
export async function deleteNodes(writer: Writer): Promise<void> {
  await writer.deleteFrom('nodes').execute();
}

/** Deletes the nodes that were last seen before this time. */
export async function deleteNodesSeenBefore(writer: Writer, time: number): Promise<void> {
  await writer.deleteFrom('nodes').where('seen_at', '<', time).execute();
}
