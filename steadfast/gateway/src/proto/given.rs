//! Protobuf by the file that a service begins with: its own descriptors, and protobuf's JSON.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind, MessageDescriptor, SerializeOptions, ServiceDescriptor,
};
use serde_json::Value as Json;
use steadfast::Contract;
use steadfast::contract::{MethodContract, ProtoContract};

/// The form of a service's JSON.
const JSON: SerializeOptions = SerializeOptions::new()
    .stringify_64_bit_integers(false)
    .use_proto_field_name(true)
    .skip_default_fields(false);

/// The pool of a contract's own file. Its service has the contract's methods, in order.
pub(super) fn pool(contract: &Contract, proto: &ProtoContract) -> Result<DescriptorPool, String> {
    let set = proto.descriptor_set()?;
    let pool = DescriptorPool::decode(&*set).map_err(|error| error.to_string())?;
    let service = service(&pool, proto)?;
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let told: Vec<String> = contract.methods.iter().map(|it| plain(&it.name)).collect();
    let rpcs: Vec<String> = service.methods().map(|it| plain(it.name())).collect();
    match told == rpcs {
        true => Ok(pool),
        false => Err(format!("{} has other methods than the contract", proto.service)),
    }
}

pub(super) fn service(
    pool: &DescriptorPool,
    proto: &ProtoContract,
) -> Result<ServiceDescriptor, String> {
    let found = pool.get_service_by_name(&proto.service);
    found.ok_or_else(|| format!("its file has no service {}", proto.service))
}

/// The arguments of a method that takes this message.
pub(super) fn arguments(
    method: &MethodContract,
    message: &DynamicMessage,
) -> Result<Bytes, String> {
    let [argument] = &method.arguments[..] else {
        return Err(format!("{} does not take one message", method.name));
    };
    let json = message.serialize_with_options(serde_json::value::Serializer, &JSON);
    let json = json.map_err(|error| error.to_string())?;
    Ok(Json::Object([(argument.name.clone(), json)].into_iter().collect()).to_string().into())
}

/// The message of a result in JSON.
pub(super) fn result(reply: &MessageDescriptor, json: &str) -> Result<Bytes, String> {
    let json: &Json = &serde_json::from_str(json).map_err(|error| error.to_string())?;
    numbers(reply, json)?;
    let message = DynamicMessage::deserialize(reply.clone(), json);
    Ok(message.map_err(|error| error.to_string())?.encode_to_vec().into())
}

/// Refuses `null` where services of a former version write it for a number that is none or is
/// infinite: protobuf would read a zero.
fn numbers(descriptor: &MessageDescriptor, json: &Json) -> Result<(), String> {
    for field in descriptor.fields() {
        let Some(value) = json.get(field.name()) else { continue };
        let kind = field.kind();
        if value.is_null()
            && matches!(kind, Kind::Float | Kind::Double)
            && !field.supports_presence()
        {
            return Err(format!("{} is no finite number", field.full_name()));
        }
        let message = match &kind {
            Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
            _ => kind,
        };
        let Kind::Message(message) = message else { continue };
        match value {
            Json::Array(items) => items.iter().try_for_each(|item| numbers(&message, item))?,
            Json::Object(entries) if field.is_map() => {
                entries.values().try_for_each(|entry| numbers(&message, entry))?;
            }
            value => numbers(&message, value)?,
        }
    }
    Ok(())
}
