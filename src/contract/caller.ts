/** Who calls. Everything they can see belongs to their tenant. */
export interface Caller {
  tenant_id: string;
  user_id: string;
}
