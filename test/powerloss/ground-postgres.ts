export type PostgresGround = import('./cut.ts').Ground & { readonly close: () => Promise<void> }
export async function startPostgresGround(): Promise<PostgresGround> {
  throw new Error('later')
}
