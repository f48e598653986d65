//! The base service: identity and configuration of the plugin (D102).

use callboard_proto::base::base_plugin_server::BasePlugin;
use callboard_proto::base::{
    ConfigSchemaRequest, ConfigSchemaResponse, PluginInfoRequest, PluginInfoResponse, PluginType,
    SetConfigRequest, SetConfigResponse,
};
use tonic::{Request, Response, Status};

use super::{Served, refused};
use crate::plugin::driver::{Driver, PluginConfig};

#[tonic::async_trait]
impl<D: Driver> BasePlugin for Served<D> {
    async fn plugin_info(
        &self,
        _: Request<PluginInfoRequest>,
    ) -> Result<Response<PluginInfoResponse>, Status> {
        let info = self.driver.info();
        Ok(Response::new(PluginInfoResponse {
            r#type: PluginType::Driver.into(),
            plugin_api_versions: info.api_versions,
            plugin_version: info.version,
            name: info.name,
        }))
    }

    async fn config_schema(
        &self,
        _: Request<ConfigSchemaRequest>,
    ) -> Result<Response<ConfigSchemaResponse>, Status> {
        Ok(Response::new(ConfigSchemaResponse { spec: Some(self.driver.config_schema()) }))
    }

    async fn set_config(
        &self,
        request: Request<SetConfigRequest>,
    ) -> Result<Response<SetConfigResponse>, Status> {
        let request = request.into_inner();
        let config = PluginConfig {
            msgpack: request.msgpack_config,
            host: request.nomad_config,
            api_version: request.plugin_api_version,
        };
        self.driver.set_config(config).await.map_err(refused)?;
        Ok(Response::new(SetConfigResponse {}))
    }
}
